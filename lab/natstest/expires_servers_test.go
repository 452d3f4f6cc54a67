//go:build servers

package natstest

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/queue"
)

// What is left of a message's own time goes with it through every kind of retry, also for consumers
// that do not use lull. A retry beyond it is a dead letter.
func TestRule21MessagesExpire(t *testing.T) {
	t.Parallel()
	life := pace.Stretch(10 * time.Minute).Truncate(time.Second)
	for name, x := range map[string]struct {
		ttl    string // of the message
		maxAge time.Duration
		ends   bool
	}{
		"no end":                    {},
		"Nats-TTL, a duration":      {ttl: life.String(), ends: true},
		"Nats-TTL, in seconds":      {ttl: fmt.Sprint(int(life.Seconds())), ends: true},
		"Nats-TTL: never":           {ttl: "never", maxAge: life},
		"the age in the stream":     {maxAge: life, ends: true},
		"Nats-TTL, before the age":  {ttl: life.String(), maxAge: 100 * life, ends: true},
		"Nats-TTL, later than that": {ttl: life.String(), maxAge: life / 2, ends: true},
	} {
		for _, schedules := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", schedules), func(t *testing.T) {
				r, began := shared(t), time.Now()
				b := &bench{TB: t, r: r, js: r.js(t), c: fresh(lullnats.Config{Lease: patience, Policy: lull.Policy{Attempts: 2}, Schedules: schedules, Duplicates: time.Second})}
				s := jetstream.StreamConfig{Name: b.c.Stream, Subjects: []string{b.c.Subject}, Retention: jetstream.WorkQueuePolicy, AllowMsgTTL: true, MaxAge: x.maxAge, Duplicates: time.Second}
				if schedules {
					s.Subjects, s.AllowMsgSchedules = append(s.Subjects, "later."+b.c.Stream+".worker.>"), true
				}
				if x.maxAge > 0 { // shorter than the policy's time, which Check would refuse
					b.c.MaxAge = x.maxAge
					b.c.Policy.Attempts, b.c.Policy.AttemptTimeout, b.c.Policy.Deadline = 2, time.Second, 2*time.Second
					b.c.Lease = 20 * time.Second
				}
				_, err := b.js.CreateStream(bg, s)
				b.ok(err)
				b.ok(lullnats.Declare(bg, b.js, b.c))
				b.open()
				m := &nats.Msg{Subject: b.c.Subject, Header: nats.Header{"kind": {"code"}}, Data: []byte("a code")}
				if x.ttl != "" {
					m.Header.Set(jetstream.MsgTTLHeader, x.ttl)
				}
				_, err = b.js.PublishMsg(bg, m)
				b.ok(err)
				d := b.one()
				first := d.Expires
				if first.IsZero() == x.ends {
					t.Fatalf("it ends at %v", first)
				}
				if left := time.Until(first); x.ends && (left <= 0 || left > life) {
					t.Fatalf("%v are left of %v", left, life)
				}
				for _, s := range []queue.Settlement{
					{Outcome: queue.Retry, After: 50 * time.Millisecond}, {Outcome: queue.Retry}, {Outcome: queue.Defer, After: 50 * time.Millisecond},
				} {
					b.settle(d, s)
					d = b.one()
					if diff := d.Expires.Sub(first).Abs(); diff > max(time.Second, time.Since(began)) { // the clocks are compared anew
						t.Errorf("after %+v it ends at %v, want %v", s, d.Expires, first)
					}
				}
				if schedules && x.ttl != "" {
					stored, err := b.stream(b.c.Stream).GetLastMsgForSubject(bg, b.c.Subject)
					b.ok(err)
					left, err := time.ParseDuration(stored.Header.Get(jetstream.MsgTTLHeader) + "s")
					if x.ttl == "never" && stored.Header.Get(jetstream.MsgTTLHeader) != "never" || x.ttl != "never" && (err != nil || left <= 0 || left > life) {
						t.Errorf("its copy in the stream has %v", stored.Header)
					}
				}
				after := life
				if !x.ends {
					after = time.Millisecond
				}
				b.settle(d, queue.Settlement{Outcome: queue.Retry, After: after})
				if !x.ends {
					b.settle(b.one(), queue.Settlement{Outcome: queue.Ack})
					return
				}
				all := b.letters()
				if len(all) != 1 || all[0].Reason != queue.ReasonExpired || all[0].Source != b.c.Stream || string(all[0].Body) != "a code" || all[0].Headers["kind"] != "code" {
					t.Fatalf("letters: %+v", all)
				}
				from, err := lullnats.Letters(bg, b.js, b.c)
				b.ok(err)
				_, err = queue.Redrive(bg, from, b.sender, queue.RedriveConfig{}, nil)
				b.ok(err)
				d = b.one()
				if x.ttl != "" && !d.Expires.IsZero() && x.maxAge == 0 {
					t.Errorf("redriven it ends at %v", d.Expires)
				}
				b.settle(d, queue.Settlement{Outcome: queue.Ack})
			})
		}
	}
}

// A delay of a second or more is a second longer where the server keeps the message. That second
// counts too.
func TestRule21MessagesExpireInTheSecondMore(t *testing.T) {
	t.Parallel()
	b := newBench(t, shared(t), lullnats.Config{Lease: patience})
	b.send("a code")
	d := b.one()
	d.Expires = time.Now().Add(patience)
	b.settle(d, queue.Settlement{Outcome: queue.Retry, After: patience - time.Second/2})
	if all := b.letters(); len(all) != 1 || all[0].Reason != queue.ReasonExpired {
		t.Errorf("letters: %+v", all)
	}
}
