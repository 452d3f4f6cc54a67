//go:build servers

package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

// The permissions in docs/queues.md are enough.
func TestPermissions(t *testing.T) {
	t.Parallel()
	info := []string{"$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.INFO.*.*"}
	user := func(name string, publish ...string) *server.User {
		return &server.User{Username: name, Password: name, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: append(publish, info...)},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Users: []*server.User{
			user("declare", "$JS.API.STREAM.CREATE.*", "$JS.API.CONSUMER.CREATE.>"),
			user("worker", "$JS.API.CONSUMER.MSG.NEXT.S.C", "$JS.ACK.S.C.>", "dead.S.C", "later.S.C.>", "orders"),
			user("sender", "orders"),
			user("reaper", "$JS.API.CONSUMER.MSG.NEXT.S_C_ADVISORIES.*", "$JS.ACK.S_C_ADVISORIES.>", "$JS.ACK.S.C.>", "$JS.API.STREAM.MSG.GET.S", "$JS.API.STREAM.MSG.DELETE.S", "dead.S.C"),
			user("redrive", "$JS.API.STREAM.MSG.GET.S_DEAD", "$JS.API.STREAM.MSG.DELETE.S_DEAD", "orders"),
		},
	})
	must(t, err)
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server is not ready")
	}
	as := func(name string) jetstream.JetStream {
		nc, err := nats.Connect(s.ClientURL(), nats.UserInfo(name, name), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { t.Errorf("%s: %v", name, err) }))
		must(t, err)
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		must(t, err)
		return js
	}
	c := short
	c.Stream, c.Consumer, c.Subject, c.Schedules, c.Lease = "S", "C", "orders", true, 2*time.Second
	must(t, lullnats.Declare(bg, as("declare"), c))
	b := &bench{TB: t, js: as("worker"), c: c}
	b.open()
	b.sender, err = lullnats.NewSender(as("sender"), "S", "orders")
	b.ok(err)
	b.send("hello")
	for range 2 {
		d := b.one()
		if _, err := b.Extend(bg, d, time.Second); err != nil {
			t.Error(err)
		}
		b.settle(d, queue.Settlement{Outcome: queue.Retry, After: time.Millisecond})
		d = b.one()
		b.settle(d, queue.Settlement{Outcome: queue.Defer})
	}
	d := b.one()
	b.settle(d, queue.Settlement{Outcome: queue.DeadLetter, Envelope: &queue.Envelope{Reason: "x", OriginalID: d.ID}})
	b.send("poison")
	for range 3 {
		b.one()
	}
	b.givenUp(2)
	reaper := as("reaper")
	b.reaped(func() *lullnats.Reaper {
		r, err := lullnats.NewReaper(bg, reaper, c)
		b.ok(err)
		return r
	}, lullnats.Reaped{Letters: 1, Gone: 1})
	redrive := as("redrive")
	from, err := lullnats.Letters(bg, redrive, c)
	b.ok(err)
	to, err := lullnats.NewSender(redrive, "S", "orders")
	b.ok(err)
	p, err := queue.Redrive(bg, from, to, queue.RedriveConfig{Rate: 1000}, nil)
	b.ok(err)
	b.equal("redriven", p.Moved, 2)
	b.settle(b.one(), queue.Settlement{Outcome: queue.Ack})
}
