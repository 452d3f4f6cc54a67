//go:build servers

package lullsqs

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/lullgo/lull/queue/queuetest"
)

// The program lull, on the emulator. The letters that it reads are out for 35 s: if it is killed the test would have to
// wait for them.
func TestCommand(t *testing.T) {
	t.Parallel()
	e := emulators.need(t, "command")
	x := queuetest.Target{Declare: e.declare, Connect: connect, Lease: lease()}
	queuetest.Command(t, x, func(text string) queuetest.CommandLine {
		var a address
		must(t, json.Unmarshal([]byte(text), &a))
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
	u, err := url.Parse(endpoint)
	must(t, err)
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
