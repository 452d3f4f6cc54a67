//go:build servers

package lullsqs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/queue/queuetest"
)

// What the comment of the package shows, as it stands there.
func packageComment(ctx context.Context, client *sqs.Client, dependency *lull.Dependency, handle queue.Handler, send func(*Broker)) error {
	config, err := Check(ctx, client, Topology{Queue: "orders"})
	if err != nil {
		return err
	}
	orders, err := New(client, config)
	if err != nil {
		return err
	}
	send(orders)
	consumer, err := queue.New("orders", orders, dependency, handle, queue.Config{})
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

func TestWhatTheDocsShow(t *testing.T) {
	t.Parallel()
	client := emulators.need(t, "docs").client()
	must.Have(Declare(t.Context(), client, Topology{Queue: "orders"}))
	d := must.Have(lull.NewDependency("ledger", queue.Policy()))
	ctx, stop := context.WithCancel(t.Context())
	handled := ""
	err := packageComment(ctx, client, d, func(_ context.Context, m *queue.Message) error {
		handled = string(m.Body)
		stop()
		return nil
	}, func(q *Broker) {
		must.Succeed(q.Send(ctx, queue.Outgoing{Body: []byte("a chair")}))
	})
	if err != nil || handled != "a chair" {
		t.Errorf("%v, handled %q", err, handled)
	}
}

// Emulated returns a client of an emulator, for the examples. A consumer that stops lets its long poll end, so these are
// short.
func Emulated() (*sqs.Client, error) {
	e, err := emulators.get("examples")
	if err != nil {
		return nil, err
	}
	return clientOf(fmt.Sprintf("http://127.0.0.1:%d", e.port), func(o *sqs.Options) { o.HTTPClient = shortPolls{} }), nil
}

type shortPolls struct{}

var waits = regexp.MustCompile(`"WaitTimeSeconds":\d+`)

func (shortPolls) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = waits.ReplaceAll(body, []byte(`"WaitTimeSeconds":1`))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", fmt.Sprint(len(body)))
	}
	return http.DefaultClient.Do(r)
}

// The program lull, on the emulator. The letters that it reads are out for 35 s: if it is killed the test would have to
// wait for them.
func TestCommand(t *testing.T) {
	t.Parallel()
	e := emulators.need(t, "command")
	x := queuetest.Target{Declare: e.declare, Connect: connect, Lease: lease()}
	queuetest.Command(t, x, func(text string) queuetest.CommandLine {
		var a address
		must.Succeed(json.Unmarshal([]byte(text), &a))
		at := func(endpoint string) string {
			return "sqs://eu-central-1?" + url.Values{"endpoint": {endpoint}}.Encode()
		}
		return queuetest.CommandLine{
			Broker: at(a.Endpoint), Refused: at("http://127.0.0.1:1"), Dead: a.Config.DeadLetters, To: a.Config.Queue,
			Killed: at(shortened(t, a.Endpoint)), Held: 6 * time.Second,
			Env: []string{"AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_EC2_METADATA_DISABLED=true"},
		}
	})
}

var outLong = regexp.MustCompile(`"VisibilityTimeout":\d{2,}`)

// shortened returns the URL of a proxy of an emulator, through which messages are out for 5 s at most.
func shortened(t *testing.T, endpoint string) string {
	u := must.Have(url.Parse(endpoint))
	s := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(u)
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			return // the process was killed
		}
		body = outLong.ReplaceAll(body, []byte(`"VisibilityTimeout":5`))
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}, ErrorLog: log.New(io.Discard, "", 0)})
	t.Cleanup(s.Close)
	return s.URL
}
