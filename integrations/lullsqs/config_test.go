package lullsqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
)

func TestConfigsThatCannotBe(t *testing.T) {
	good := Config{Queue: "https://sqs.eu-central-1.amazonaws.com/1/orders", DeadLetters: "https://sqs.eu-central-1.amazonaws.com/1/orders-dead"}
	for _, c := range []struct {
		change func(*Config)
		fields string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.DeadLetters = "" }, ""},
		{func(c *Config) { c.Queue = "http://127.0.0.1:4566/0/orders" }, ""},
		{func(c *Config) { c.Wait, c.MaxDelay = time.Second, time.Second }, ""},
		{func(c *Config) { c.Wait, c.MaxDelay = 20*time.Second, 11*time.Hour }, ""},
		{func(c *Config) { c.Queue += ".fifo"; c.DeadLetters += ".fifo" }, ""},
		{func(c *Config) { *c = Config{} }, "Queue"},
		{func(c *Config) { c.Queue, c.DeadLetters = "orders", "dead" }, "Queue DeadLetters"},
		{func(c *Config) { c.Queue = "arn:aws:sqs:eu-central-1:1:orders" }, "Queue"},
		{func(c *Config) { c.Queue = "https://sqs.eu-central-1.amazonaws.com/" }, "Queue"},
		{func(c *Config) { c.DeadLetters = c.Queue }, "DeadLetters"},
		{func(c *Config) { c.Queue += ".fifo" }, "DeadLetters"},
		{func(c *Config) { c.DeadLetters += ".fifo" }, "DeadLetters"},
		{func(c *Config) { c.Wait, c.MaxDelay = 21*time.Second, 11*time.Hour+1 }, "Wait MaxDelay"},
		{func(c *Config) { c.Wait, c.MaxDelay = -1, -1 }, "Wait MaxDelay"},
		{func(c *Config) { c.Wait, c.MaxDelay = 1500*time.Millisecond, 1500*time.Millisecond }, "Wait MaxDelay"},
		{func(c *Config) { c.Wait, c.MaxDelay = 1<<63-1, 1<<63-1 }, "Wait MaxDelay"},
	} {
		config := good
		c.change(&config)
		err := config.Validate()
		if got := strings.Join(problem.Fields(err), " "); got != c.fields {
			t.Errorf("%+v: %v, want problems of %q", config, err, c.fields)
		}
		if _, made := New(newFake(), config); (made == nil) != (err == nil) {
			t.Errorf("%+v: New says %v", config, made)
		}
	}
	if _, err := New(nil, good); err == nil {
		t.Error("a queue without a client")
	}
}

func FuzzConfig(f *testing.F) {
	f.Add("https://x/y", "https://x/z.fifo", int64(1), int64(1))
	f.Fuzz(func(t *testing.T, queue, dead string, wait, delay int64) {
		c := Config{Queue: queue, DeadLetters: dead, Wait: time.Duration(wait), MaxDelay: time.Duration(delay)}
		q, err := New(newFake(), c)
		if err != nil {
			return
		}
		can := q.Capabilities()
		if can.MaxDelay < time.Second || can.MaxLease < 59*time.Minute || can.MaxDelay+can.MaxLease >= 12*time.Hour {
			t.Errorf("%+v: %+v", c, can)
		}
	})
}

func TestTopologiesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		t      Topology
		fields string
	}{
		{Topology{Queue: "orders"}, ""},
		{Topology{Queue: "orders.fifo"}, ""},
		{Topology{Queue: strings.Repeat("x", 75)}, ""},
		{Topology{Queue: "orders", Policy: lull.Policy{Attempts: 998}}, ""},
		{Topology{Queue: "orders", Policy: lull.Policy{Attempts: 3}, DeliveryLimit: 5, MaxAge: time.Minute, DeadLetterMaxAge: time.Hour}, ""},
		{Topology{}, "Queue"},
		{Topology{Queue: "or ders"}, "Queue"},
		{Topology{Queue: strings.Repeat("x", 76)}, "DeadLetters"},
		{Topology{Queue: strings.Repeat("x", 81)}, "Queue"},
		{Topology{Queue: "orders", DeadLetters: "orders"}, "DeadLetters"},
		{Topology{Queue: "orders", DeadLetters: "x.fifo"}, "DeadLetters"},
		{Topology{Queue: "orders.fifo", DeadLetters: "x"}, "DeadLetters"},
		{Topology{Queue: "orders", Policy: lull.Policy{Attempts: 999}}, "DeliveryLimit"},
		{Topology{Queue: "orders", Policy: lull.Policy{Attempts: -1}}, "Policy.Attempts"},
		{Topology{Queue: "orders", Policy: lull.Policy{Attempts: 3}, DeliveryLimit: 4}, "DeliveryLimit"},
		{Topology{Queue: "orders", DeliveryLimit: 1001}, "DeliveryLimit"},
		{Topology{Queue: "orders", MaxAge: time.Second}, "MaxAge"},
		{Topology{Queue: "orders", MaxAge: 14 * 24 * time.Hour}, "MaxAge DeadLetterMaxAge"},
		{Topology{Queue: "orders", MaxAge: time.Hour, DeadLetterMaxAge: time.Hour}, "DeadLetterMaxAge"},
		{Topology{Queue: "orders", DeadLetterMaxAge: 15 * 24 * time.Hour}, "DeadLetterMaxAge"},
		{Topology{Queue: "orders", MaxAge: time.Hour + 1, DeadLetterMaxAge: 2*time.Hour + 1}, "MaxAge DeadLetterMaxAge"},
	} {
		err := c.t.Validate()
		if got := strings.Join(problem.Fields(err), " "); got != c.fields {
			t.Errorf("%+v: %v, want problems of %q", c.t, err, c.fields)
		}
		f := newFake()
		if _, made := Declare(t.Context(), f, c.t); (made == nil) != (err == nil) || err != nil && len(f.calls) > 0 {
			t.Errorf("%+v: Declare says %v", c.t, made)
		}
	}
	if _, err := Check(t.Context(), nil, Topology{Queue: "orders"}); err == nil {
		t.Error("Check without a client")
	}
}

// mismatches returns its lines.
func mismatches(t *testing.T, err error) string {
	t.Helper()
	var m Mismatches
	if !errors.As(err, &m) {
		t.Fatalf("%v is no Mismatch", err)
	}
	if v := lull.Classify(err); v.Kind != lull.KindPermanent {
		t.Errorf("%v is not marked", err)
	}
	return strings.Join(m, "\n")
}

// admins has those on whom queues are declared: with the tag servers, the emulator too.
var admins = map[string]func(t *testing.T) Admin{"fake": func(*testing.T) Admin { return newFake() }}

// onAll runs a test on each of them.
func onAll(t *testing.T, run func(t *testing.T, a Admin)) {
	for name, admin := range admins {
		t.Run(name, func(t *testing.T) { run(t, admin(t)) })
	}
}

func TestDeclare(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		onAll(t, func(t *testing.T, a Admin) {
			x := Topology{Queue: newName(t, fifo), Policy: lull.Policy{Attempts: 5}, MaxAge: 2 * time.Hour, DeadLetterMaxAge: 48 * time.Hour}
			dead := x.withDefaults().DeadLetters
			_, err := Check(t.Context(), a, x)
			if got, want := mismatches(t, err), fmt.Sprintf("the queue %s does not exist\nthe queue %s does not exist", x.Queue, dead); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			first := must.Have(Declare(t.Context(), a, x))
			if !strings.HasSuffix(first.Queue, "/"+x.Queue) || !strings.HasSuffix(first.DeadLetters, "/"+dead) || first.Validate() != nil {
				t.Errorf("%+v", first)
			}
			for range 2 {
				again := must.Have(Declare(t.Context(), a, x))
				checked := must.Have(Check(t.Context(), a, x))
				if again != first || checked != first {
					t.Errorf("%+v, %+v, want %+v", again, checked, first)
				}
			}
			_, err = Check(t.Context(), a, Topology{Queue: x.Queue, Policy: lull.Policy{Attempts: 3}}) // fewer are no problem
			must.Succeed(err)
			_, err = Check(t.Context(), a, Topology{Queue: x.Queue, Policy: lull.Policy{Attempts: 14}, MaxAge: time.Hour, DeadLetterMaxAge: 47 * time.Hour})
			if got, want := mismatches(t, err), strings.Join([]string{
				x.Queue + ": RedrivePolicy.maxReceiveCount is 15: want 16 or more, 2 more than there are attempts",
				x.Queue + ": MessageRetentionPeriod is 7200 s: want 3600 s",
				dead + ": MessageRetentionPeriod is 172800 s: want 169200 s",
			}, "\n"); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
		})
	}
}

// What exists is not changed, except a missing redrive policy. Everything that is wrong is reported
// at once.
func TestDeclareLeavesAloneWhatIsThere(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, a Admin) {
		name := newName(t, false)
		create := func(name string, attrs map[string]string) string {
			o := must.Have(a.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attrs}))
			return *o.QueueUrl
		}
		attributes := func(url string) map[string]string {
			o := must.Have(a.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"}}))
			return o.Attributes
		}
		url := create(name, map[string]string{"MessageRetentionPeriod": "86400"})
		x := Topology{Queue: name}
		_, err := Check(t.Context(), a, x)
		if got := mismatches(t, err); !strings.Contains(got, "has no RedrivePolicy") || !strings.Contains(got, name+"-dead does not exist") {
			t.Errorf("%s", got)
		}
		must.Have(Declare(t.Context(), a, x))
		var p redrivePolicy
		must.Succeed(json.Unmarshal([]byte(attributes(url)["RedrivePolicy"]), &p))
		if p.receives() != 20 || !strings.HasSuffix(p.Target, ":"+name+"-dead") || attributes(url)["MessageRetentionPeriod"] != "86400" {
			t.Errorf("%v", attributes(url))
		}

		other := name + "-other"
		elsewhere := create(name+"-elsewhere", nil)
		dead := create(other+"-dead", map[string]string{
			"MessageRetentionPeriod": "86400", "MaximumMessageSize": "2048",
			"RedrivePolicy":      `{"deadLetterTargetArn":"` + attributes(elsewhere)["QueueArn"] + `","maxReceiveCount":3}`,
			"RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:eu-central-1:1:x"]}`,
		})
		main := create(other, map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + attributes(elsewhere)["QueueArn"] + `","maxReceiveCount":"3"}`})
		before := fmt.Sprint(attributes(main), attributes(dead))
		_, err = Declare(t.Context(), a, Topology{Queue: other})
		got := mismatches(t, err)
		for _, want := range []string{
			other + ": RedrivePolicy.deadLetterTargetArn is " + attributes(elsewhere)["QueueArn"] + ": want " + attributes(dead)["QueueArn"],
			other + ": RedrivePolicy.maxReceiveCount is 3: want 12 or more, 2 more than there are attempts",
			other + "-dead: it has a RedrivePolicy: want none, for to be read counts as a receive",
			other + "-dead: MessageRetentionPeriod is 86400 s: want more than the 345600 s of " + other,
			other + "-dead: MaximumMessageSize is 2048 bytes: want the 1048576 of " + other + ", or more",
			other + "-dead: RedriveAllowPolicy is",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s\nlacks\n%s", got, want)
			}
		}
		if n := strings.Count(got, "\n"); n != 5 {
			t.Errorf("%d lines:\n%s", n+1, got)
		}
		check.Equal(t, fmt.Sprint(attributes(main), attributes(dead)), before, "after a check")
	})
}

// If two processes declare at a time, one gets the error that the queue exists already, perhaps
// with other attributes.
func TestDeclareAtTheSameTime(t *testing.T) {
	f := newFake()
	others := []string{"orders-dead", "orders"}
	f.failing = func(op string, _ int) error {
		if op != "Create" || len(others) == 0 {
			return nil
		}
		name, rest := others[0], others[1:]
		others = nil
		f.mu.Unlock()
		defer f.mu.Lock()
		must.Have(f.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name}))
		others = rest
		return &types.QueueNameExists{}
	}
	_, err := Declare(t.Context(), f, Topology{Queue: "orders"})
	if got := mismatches(t, err); !strings.Contains(got, "orders-dead: MessageRetentionPeriod is 345600 s") || strings.Contains(got, "does not exist") {
		t.Errorf("%v", got)
	}
}

// That the queues could not be asked is no Mismatches.
func TestCheckThatFails(t *testing.T) {
	for op, err := range map[string]error{"Url": apiError(403, "AccessDenied", ""), "Attributes": apiError(503, "ServiceUnavailable", ""), "Create": &types.QueueDeletedRecently{}, "Set": errors.New("reset")} {
		f := newFake()
		f.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: ptr("orders")})
		f.failing = func(name string, _ int) error {
			if name == op {
				return err
			}
			return nil
		}
		_, got := Declare(t.Context(), f, Topology{Queue: "orders"})
		var m Mismatches
		if !errors.Is(got, err) || errors.As(got, &m) {
			t.Errorf("%s: %v", op, got)
		}
		v := lull.Classify(got)
		if op == "Create" && v.After != time.Minute {
			t.Errorf("a queue that was deleted a moment ago: %+v", v)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ended, newFake(), Topology{Queue: "orders"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func ptr(s string) *string { return &s }
