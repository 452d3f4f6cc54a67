//go:build servers

package lullamqp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

func management(t testing.TB) Management {
	return Management{URL: fmt.Sprintf("http://127.0.0.1:%d", rabbit(t).Management), User: "guest", Password: "guest"}
}

// request sends a request to the HTTP API that changes something.
func request(t testing.TB, method string, body any, path ...string) {
	t.Helper()
	text, _ := json.Marshal(body)
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	m := management(t)
	req, _ := http.NewRequest(method, m.URL+"/api/"+strings.Join(path, "/"), bytes.NewReader(text))
	req.SetBasicAuth(m.User, m.Password)
	req.Header.Set("Content-Type", "application/json")
	res := must.Have(http.DefaultClient.Do(req))
	res.Body.Close()
	if res.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, req.URL, res.Status)
	}
}

func problems(t testing.TB, err error) []string {
	t.Helper()
	var p Mismatches
	if !errors.As(err, &p) {
		t.Fatalf("not Problems: %v", err)
	}
	check.Equal(t, lull.Classify(err).Kind, lull.KindPermanent, "kind of %v", err)
	var lines []string
	for _, each := range p {
		lines = append(lines, each.String())
	}
	slices.Sort(lines)
	return lines
}

// Everything that is missing or different is reported once, and nothing else.
func TestTopology(t *testing.T) {
	t.Parallel()
	config := Config{Queue: "topology.orders", Prefix: "topology"}
	c := client(t, rabbit(t).url())
	ctx := testContext(t)
	m := management(t)

	// Nothing is there.
	const exchanges, queues, bindings = levels + 2, levels + 3, 2*levels + 2
	if got := problems(t, c.Check(ctx, config)); len(got) != exchanges+queues {
		t.Errorf("%d problems where nothing is there, want %d:\n%s", len(got), exchanges+queues, strings.Join(got, "\n"))
	}
	if got := problems(t, m.Check(ctx, config)); len(got) != exchanges+queues+bindings {
		t.Errorf("%d problems where nothing is there, want %d:\n%s", len(got), exchanges+queues+bindings, strings.Join(got, "\n"))
	}
	if _, err := raw(t).QueueDeclarePassive("topology.orders", true, false, false, false, nil); !answered(err, amqp.NotFound) {
		t.Errorf("Check made a queue: %v", err)
	}

	// Several at once, and again.
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			c := client(t, rabbit(t).url())
			declare(t, c, config)
		})
	}
	all.Wait()
	t.Cleanup(func() { unmake(t, config) })
	check.Equal(t, c.Declare(ctx, config), nil, "c.Declare(ctx, config)")
	for what, err := range map[string]error{"Check": c.Check(ctx, config), "Management.Check": m.Check(ctx, config)} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	// Something is missing, something is different.
	ch := raw(t)
	must := func(_ any, err error) {
		t.Helper()
		must.Succeed(err)
	}
	must(ch.QueueDelete("topology.delay-03", false, false, false))
	must(nil, ch.ExchangeDelete("topology.delay-05", false, false))
	must(ch.QueueDelete("topology.delay-07", false, false, false))
	must(ch.QueueDeclare("topology.delay-07", true, false, false, false, amqp.Table{"x-queue-type": "quorum", "x-message-ttl": int64(1)}))
	must(nil, ch.QueueUnbind("topology.orders", queuePattern("topology.orders"), "topology.delay-deliver", nil))
	must(ch.QueueDelete("topology.orders.dead", false, false, false))
	must(ch.QueueDeclare("topology.orders.dead", true, false, false, false, nil))
	request(t, http.MethodPut, map[string]any{"pattern": "^topology[.]orders$", "definition": map[string]any{"delivery-limit": 5, "max-length": 10}}, "policies", "/", "short")
	t.Cleanup(func() { request(t, http.MethodDelete, nil, "policies", "/", "short") })

	want := []string{
		"exchange topology.delay-05: missing",
		"queue topology.delay-03: missing, want a durable queue with x-dead-letter-exchange=topology.delay-02, x-dead-letter-strategy=at-least-once, x-message-ttl=160, x-overflow=reject-publish, x-queue-type=quorum",
		"queue topology.delay-07: x-",
		"queue topology.orders.dead: x-",
	}
	like(t, "Check", problems(t, c.Check(ctx, config)), want)
	await(t, "the policy in force", func() bool { return strings.Contains(fmt.Sprint(m.Check(ctx, config)), "policy short") })
	like(t, "Management.Check", problems(t, m.Check(ctx, config)), []string{
		"binding topology.delay-03 -> topology.delay-03: missing",
		"binding topology.delay-05 -> topology.delay-04: missing",
		"binding topology.delay-05 -> topology.delay-05: missing",
		"binding topology.delay-06 -> topology.delay-05: missing",
		"binding topology.delay-07 -> topology.delay-07: missing",
		`binding topology.delay-deliver -> topology.orders: missing, want the key "*.*.`,
		"exchange topology.delay-05: missing",
		"policy short of queue topology.orders: delivery-limit is 5, want 100 or more",
		"policy short of queue topology.orders: max-length is 10, want none",
		"queue topology.delay-03: missing",
		"queue topology.delay-07: x-dead-letter-exchange is not set, want topology.delay-06",
		"queue topology.delay-07: x-dead-letter-strategy is not set, want at-least-once",
		"queue topology.delay-07: x-message-ttl is 1, want 2560",
		"queue topology.delay-07: x-overflow is not set, want reject-publish",
		"queue topology.orders.dead: type is classic, want quorum",
		"queue topology.orders.dead: x-delivery-limit is not set, want 1000000",
		"queue topology.orders.dead: x-queue-type is ",
	})
	like(t, "Declare", problems(t, c.Declare(ctx, config)), want[2:])
	// Declare made what was missing.
	left := c.Check(ctx, config)
	like(t, "Check after Declare", problems(t, left), want[2:])
	t.Logf("%v:\n%v", serverVersion(t), left)
}

func like(t *testing.T, what string, got, want []string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range want {
		ok = ok && strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func unmake(t testing.TB, config Config) {
	ch := raw(t)
	config = config.WithDefaults()
	for _, o := range config.topology().objects {
		err := error(nil)
		if o.kind == kindExchange {
			err = ch.ExchangeDelete(o.name, false, false)
		} else {
			_, err = ch.QueueDelete(o.name, false, false, false)
		}
		must.Succeed(err)
	}
}

// A user who may not configure a queue can check that it is there.
func TestCheckWithoutTheRightToConfigure(t *testing.T) {
	t.Parallel()
	config := declared(t, Config{})
	request(t, http.MethodPut, map[string]any{"password": "checker", "tags": ""}, "users", "checker")
	t.Cleanup(func() { request(t, http.MethodDelete, nil, "users", "checker") })
	request(t, http.MethodPut, map[string]any{"configure": "^$", "write": ".*", "read": ".*"}, "permissions", "/", "checker")
	c := client(t, strings.Replace(rabbit(t).url(), "guest:guest", "checker:checker", 1))
	check.Equal(t, c.Check(testContext(t), config), nil, "c.Check(testContext(t), config)")
	config.Queue = "nowhere"
	like(t, "Check", problems(t, c.Check(testContext(t), config)), []string{"queue nowhere.dead: missing", "queue nowhere: missing"})
	if err := c.Declare(testContext(t), config); err == nil || lull.Classify(err).Kind != lull.KindPermanent || !strings.Contains(err.Error(), "ACCESS_REFUSED") {
		t.Errorf("Declare: %v", err)
	}
	m := management(t)
	m.User, m.Password = "checker", "wrong"
	if err := m.Check(testContext(t), config); err == nil || lull.Classify(err).Kind != lull.KindPermanent {
		t.Errorf("Management.Check with a wrong password: %v", err)
	}
	m.URL = "nonsense"
	if err := m.Check(testContext(t), config); err == nil || !strings.Contains(err.Error(), "Management.URL") {
		t.Errorf("Management.Check of nonsense: %v", err)
	}
}

// Messages that wait for a queue that is deleted meanwhile are put aside, however many there are.
// They do not delay others.
func TestDelayedForAQueueThatIsGone(t *testing.T) {
	t.Parallel()
	config := Config{Queue: "gone.queue", Prefix: "gone"}
	c := client(t, rabbit(t).url())
	other := config
	other.Queue = "gone.other"
	declare(t, c, other)
	ch := raw(t)
	t.Cleanup(func() {
		unmake(t, config)
		raw(t).QueueDelete("gone.other", false, false, false)
		raw(t).QueueDelete("gone.other.dead", false, false, false)
	})
	const n = 100
	back := n // messages whose delay was over before their queue had gone
	for after := 4 * time.Second; back == n; after *= 4 {
		declare(t, c, config)
		q := opened(t, config)
		for range n {
			send(t, q, "gone")
		}
		for _, d := range receive(t, q, n) {
			settle(t, q, d, queue.Settlement{Outcome: queue.Retry, After: after})
		}
		must.Succeed(q.Close(testContext(t)))
		back = must.Have(ch.QueueDelete(config.Queue, false, false, false))
	}
	o := opened(t, other)
	send(t, o, "other")
	settle(t, o, receive(t, o, 1)[0], queue.Settlement{Outcome: queue.Retry, After: 700 * time.Millisecond})
	settle(t, o, receive(t, o, 1)[0], queue.Settlement{Outcome: queue.Ack})
	got := 0
	await(t, "all put aside", func() bool {
		_, ok, err := ch.Get("gone.delay-lost", true)
		must.Succeed(err)
		if ok {
			got++
		}
		return got >= n-back
	})
	if _, err := ch.QueueDeclare(config.Queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err) // for unmake
	}
}
