package admission

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// desk is a controller with a handful of requests.
type desk struct {
	*testing.T
	c       *Controller
	settled []string // names, with what became of them, since the last look
}

type guest struct {
	Ticket
	name string
	last Decision
}

func newDesk(t *testing.T, c Config) *desk { return &desk{T: t, c: must.Have(New(c))} }

func (d *desk) guest(name string) *guest {
	g := &guest{name: name}
	g.Settled = func(_ *Ticket, x Decision) {
		g.last = x
		word := x.Outcome.String()
		if x.Outcome == Refused {
			word = x.Reason.String()
		}
		d.settled = append(d.settled, name+" "+word)
	}
	return g
}

// arrive lets a request arrive, and fails the test unless the result is want: an outcome, or a reason.
func (d *desk) arrive(now time.Duration, g *guest, r Request, want string) *guest {
	d.Helper()
	g.last = d.c.Arrive(now, r, &g.Ticket)
	got := g.last.Outcome.String()
	if g.last.Outcome == Refused {
		got = g.last.Reason.String()
	}
	if got != want {
		d.Fatalf("at %v: %s is %s, want %s", now, g.name, got, want)
	}
	return g
}

func (d *desk) now(now time.Duration, name string, want string) *guest {
	d.Helper()
	return d.arrive(now, d.guest(name), Request{}, want)
}

// expect fails the test unless these were settled since the last time.
func (d *desk) expect(want ...string) {
	d.Helper()
	if len(d.settled) != len(want) {
		d.Fatalf("settled: %q, want %q", d.settled, want)
	}
	for i := range want {
		if d.settled[i] != want[i] {
			d.Fatalf("settled: %q, want %q", d.settled, want)
		}
	}
	d.settled = nil
}

func (d *desk) depart(now time.Duration, g *guest) { d.c.Depart(now, &g.Ticket, Done) }

func TestNobodyWaits(t *testing.T) {
	d := newDesk(t, Config{Limit: 1, MaxWait: -1})
	a := d.now(0, "a", "admitted")
	d.now(0, "b", "full")
	d.depart(1*ms, a)
	// Retries go last all the same.
	d.arrive(2*ms, d.guest("c"), Request{Attempt: 2}, "shed_retry")
	d.now(3*ms, "d", "admitted")
	d.arrive(200*ms, d.guest("e"), Request{Attempt: 2}, "full")
}

func TestDeadlines(t *testing.T) {
	d := newDesk(t, Config{Limit: 1, MaxWait: 100 * ms})
	a := d.now(0, "a", "admitted")
	d.depart(20*ms, a) // work takes 20 ms
	a = d.now(30*ms, "a", "admitted")
	d.arrive(30*ms, d.guest("late"), Request{Deadline: 40 * ms}, "too_late")
	d.arrive(30*ms, d.guest("past"), Request{Deadline: 10 * ms}, "too_late")
	b := d.arrive(31*ms, d.guest("b"), Request{Deadline: 70 * ms}, "queued")
	if b.Until < 50*ms || b.Until > 51*ms {
		t.Errorf("b may wait until %v, want 20ms before its deadline of 70ms", b.Until)
	}
	d.depart(60*ms, a)
	d.expect("b too_late")
	if s := d.c.Snapshot(60 * ms); s.InFlight != 0 {
		t.Error("work was begun that cannot be done in time")
	}
	// When all are refused for their deadlines, the estimate gives way.
	a = d.now(time.Second, "slow", "admitted")
	d.depart(time.Minute, a)
	n := 0
	for ; n < 1000; n++ {
		var x Ticket
		if d.c.Arrive(time.Minute, Request{Deadline: time.Minute + 15*ms}, &x).Outcome == Admitted {
			break
		}
	}
	if n == 0 || n == 1000 {
		t.Errorf("%d requests of 15 ms were refused after others took longer, want some", n)
	}
}

func TestRetriesUnderPressure(t *testing.T) {
	d := newDesk(t, Config{Limit: 1, MaxWait: 10 * ms, RetryRatio: -1})
	a := d.now(0, "a", "admitted")
	d.now(0, "b", "queued")
	d.arrive(5*ms, d.guest("c"), Request{Attempt: 2}, "queued")
	d.now(6*ms, "d", "queued")
	r := d.arrive(10*ms, d.guest("e"), Request{Attempt: 2}, "shed_retry")
	if !r.last.DontRetry || r.last.Pushback().Milliseconds() != -1 || r.last.RetryAfter <= 0 {
		t.Errorf("a retry under pressure is told %+v", r.last)
	}
	d.arrive(10*ms, d.guest("f"), Request{Hedge: true}, "shed_hedge")
	// A criticality above the usual trumps.
	d.arrive(10*ms, d.guest("g"), Request{Attempt: 2, Priority: CriticalPlus}, "queued")
	d.depart(10*ms, a)
	d.expect("g admitted")
}

func TestRetryBudget(t *testing.T) {
	d := newDesk(t, Config{Limit: 1000, RetryRatio: 0.5})
	var in, out int
	retry := func(now time.Duration, n int) {
		in, out = 0, 0
		for range n {
			var x Ticket
			switch r := d.c.Arrive(now, Request{Attempt: 2}, &x); r.Reason {
			case NotRefused:
				in++
				d.c.Depart(now, &x, Done)
			case RetryBudget:
				out++
				if !r.DontRetry {
					t.Fatal("a retry beyond the budget may come back")
				}
			}
		}
	}
	first := func(now time.Duration, n int) {
		for range n {
			d.depart(now, d.now(now, "first", "admitted"))
		}
	}
	retry(0, 100)
	if in != 10 || out != 90 {
		t.Errorf("%d retries came in without a first attempt, want the 10 that always may", in)
	}
	first(time.Second, 100)
	retry(2*time.Second, 100)
	check.Equal(t, in, 50, "retries that came in after 100 first attempts: half of those")
	retry(20*time.Second, 100) // all is forgotten
	check.Equal(t, in, 10, "retries that came in after a pause")
	if s := d.c.Snapshot(20 * time.Second); s.Arrived(Retry) != 300 || s.Admitted(Retry) != 70 || s.Refused(RetryBudget) != 230 || s.Departed(Done) != 170 {
		t.Errorf("%+v", s)
	}
}

// The advice to a burst is to come back one after the other, as fast as the server can serve
// them. The advice in an overload that lasts is not to retry.
func TestAdvice(t *testing.T) {
	d := newDesk(t, Config{Limit: 2, MaxWait: -1})
	a := d.now(0, "a", "admitted")
	d.depart(20*ms, a) // 2 at a time, 20 ms each: one in 10 ms
	d.now(30*ms, "a", "admitted")
	d.now(30*ms, "b", "admitted")
	for i := range time.Duration(50) {
		r := d.now(30*ms, "c", "full").last
		// Without a source of chance: half of what it may be more.
		base := (i + 1) * 10 * ms
		if want := base + base/4; r.DontRetry || r.RetryAfter < want-ms || r.RetryAfter > want+ms {
			t.Errorf("the %d. of a burst may come back after %v, want %v", i+1, r.RetryAfter, want)
		}
	}
	// Half of them have been served by then, if they came.
	if r := d.now(280*ms, "c", "full").last; r.RetryAfter < 320*ms || r.RetryAfter > 330*ms {
		t.Errorf("250 ms later: %v, want 26 places of 10 ms and a quarter", r.RetryAfter)
	}
}

func TestAdviceIsSpread(t *testing.T) {
	for _, c := range []struct {
		bits uint64
		want time.Duration
	}{{0, 100 * ms}, {1<<64 - 1, 150 * ms}} {
		a := must.Have(New(Config{Limit: 1, MaxWait: -1}, WithRand(func() uint64 { return c.bits })))
		var x, y Ticket
		a.Arrive(0, Request{}, &x)
		if d := a.Arrive(0, Request{}, &y); d.RetryAfter != c.want || d.DontRetry || d.Pushback() != c.want {
			t.Errorf("%+v, want %v", d, c.want)
		}
		for range 10_000 {
			if d := a.Arrive(0, Request{}, &y); d.RetryAfter > 30*time.Second || d.RetryAfter < 100*ms {
				t.Fatalf("%+v", d)
			}
		}
	}
}

func TestLastingPressure(t *testing.T) {
	a := must.Have(New(Config{Limit: 1, MaxWait: -1}))
	var x, y Ticket
	a.Arrive(0, Request{}, &x)
	for now := time.Duration(0); now < 3*time.Second; now += 50 * ms {
		d := a.Arrive(now, Request{}, &y)
		// Pressure begins with the first arrival that finds somebody refused.
		check.Equal(t, d.DontRetry, now >= 50*ms+time.Second, "after %v: %+v", now, d)
		if d.DontRetry && d.RetryAfter < now-50*ms {
			t.Errorf("after %v of pressure those who do not understand may come back in %v", now, d.RetryAfter)
		}
	}
	a.Depart(3*time.Second, &x, Unmeasured)
	if d := a.Arrive(4*time.Second, Request{Attempt: 2}, &y); d.Outcome != Admitted {
		t.Error("a retry, long after the pressure:", d)
	}
}

func TestMisuse(t *testing.T) {
	a := must.Have(New(Config{Limit: 1}))
	var x, y Ticket
	a.Depart(0, &x, Done)
	if _, left := a.Leave(0, &x); left {
		t.Error("who never came has left")
	}
	a.Arrive(0, Request{}, &x)
	if d := a.Arrive(0, Request{}, &x); d.Outcome != Admitted {
		t.Error(d)
	}
	a.Arrive(0, Request{}, &y)
	if d := a.Arrive(0, Request{}, &y); d.Outcome != Queued {
		t.Error(d)
	}
	if s := a.Snapshot(0); s.InFlight != 1 || s.Waiting != 1 {
		t.Errorf("%+v", s)
	}
	a.Depart(0, &y, Done) // waits, and is not at work
	if s := a.Snapshot(0); s.InFlight != 1 || s.Waiting != 1 {
		t.Errorf("%+v", s)
	}
	a.Depart(1, &x, Done) // without Settled nobody is notified
	a.Depart(2, &x, Done)
	if s := a.Snapshot(2); s.InFlight != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	a.Depart(3, &y, Unmeasured)
	if s := a.Snapshot(3); s.InFlight != 0 || s.Departed(Unmeasured) != 1 || s.Departed(WorkResult(9)) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestNoAllocations(t *testing.T) {
	a := must.Have(New(Config{Limit: 1}))
	var x, y, z Ticket
	now := time.Duration(0)
	for name, f := range map[string]func(){
		"admitted": func() {
			a.Arrive(now, Request{}, &x)
			now += ms
			a.Depart(now, &x, Done)
		},
		"queued": func() {
			a.Arrive(now, Request{}, &x)
			a.Arrive(now, Request{}, &y)
			now += ms
			a.Depart(now, &x, Done)
			a.Depart(now, &y, Done)
		},
		"left, shed": func() {
			a.Arrive(now, Request{}, &x)
			a.Arrive(now, Request{}, &y)
			a.Arrive(now, Request{Attempt: 3}, &z)
			now += time.Second
			a.Leave(now, &y)
			a.Leave(now, &z)
			a.Depart(now, &x, Done)
		},
	} {
		check.Equal(t, testing.AllocsPerRun(1000, f), 0, "%s: allocations", name)
	}
}

func BenchmarkAdmitted(b *testing.B) {
	a := must.Have(New(Config{}))
	var x Ticket
	now := time.Duration(0)
	for b.Loop() {
		a.Arrive(now, Request{}, &x)
		now += 1000
		a.Depart(now, &x, Done)
	}
}

func BenchmarkAdmittedParallel(b *testing.B) {
	a := must.Have(New(Config{}))
	b.RunParallel(func(p *testing.PB) {
		x, now := new(Ticket), time.Duration(0)
		for p.Next() {
			a.Arrive(now, Request{}, x)
			now += 1000
			a.Depart(now, x, Done)
		}
	})
}

func BenchmarkRefused(b *testing.B) {
	a := must.Have(New(Config{Limit: 1, MaxWait: -1}))
	var x, y Ticket
	a.Arrive(0, Request{}, &x)
	for b.Loop() {
		a.Arrive(0, Request{}, &y)
	}
}
