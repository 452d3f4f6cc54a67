package torture

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where timers are never late
		w := newWatch()
		defer w.close()
		began := time.Now()
		check.Equal(t, w.late(began), 0, "before the first tick")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := w.late(began); got != 0 || len(w.list) != 100 {
			t.Errorf("%d ticks, and timers are %v late", len(w.list), got)
		}
		w.mu.Lock()
		for i := range w.list {
			if i >= 50 {
				w.list[i].late = time.Duration(i) * ms
			}
		}
		w.mu.Unlock()
		for from, want := range map[time.Duration]time.Duration{0: 90 * ms, 500 * ms: 94 * ms, 2 * time.Second: 0} {
			check.Equal(t, w.late(began.Add(from)), want, "from %v on", from)
		}
	})
}

// caseNamed returns a case.
func caseNamed(name string) Case { return must.Have(Select([]string{name}))[0] }

// What a busy machine may have done is seen again, and what it cannot have done is not.
func TestWhatABusyMachineMayHide(t *testing.T) {
	const quiet, busy = usualLateness, usualLateness + 1
	for _, c := range []struct {
		name, of string
		seen     Seen
		late     time.Duration
		grade    Grade // empty: it does not matter
		again    bool
	}{
		{name: "it came when asked", of: "hint-seconds-503", seen: Seen{Attempts: tries(2*time.Second, 0, 2100*ms)}, late: busy, again: true},
		{name: "it came when asked, on a machine that has time", of: "hint-seconds-503", seen: Seen{Attempts: tries(2*time.Second, 0, 2100*ms)}, late: quiet},
		{name: "it came too early", of: "hint-seconds-503", seen: Seen{Attempts: tries(2*time.Second, 0, 1900*ms)}, late: busy},
		{name: "it did not come back", of: "hint-413", seen: Seen{Attempts: tries(2*time.Second, 0)}, late: busy},

		{name: "ended in time", of: "deadline-silent", seen: Seen{Attempts: tries(0, 0), Finished: ended(false, time.Second)}, late: busy},
		{name: "ended late", of: "deadline-silent", seen: Seen{Attempts: tries(0, 0), Finished: ended(false, 6*time.Second)}, late: busy, again: true},
		{name: "ended late on a machine that has time", of: "deadline-silent", seen: Seen{Attempts: tries(0, 0), Finished: ended(false, 6*time.Second)}, late: quiet},
		{name: "never ended", of: "deadline-silent", seen: Seen{Attempts: tries(0, 0), Finished: []Finished{{End: 24 * time.Second, Ended: "limit"}}}, late: busy},
		{name: "its time was up before it arrived", of: "deadline-silent", seen: Seen{Finished: ended(false, time.Second)}, late: quiet, again: true},
		{name: "its time was up before its POST arrived", of: "once-post-timeout", seen: Seen{Finished: ended(false, 3*time.Second)}, late: quiet, again: true},
		{name: "a late attempt", of: "deadline-attempts", seen: Seen{Attempts: tries(0, 0, 1600*ms), Finished: ended(false, 1600*ms)}, late: busy, again: true},
		{name: "slept", of: "deadline-hint", seen: Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, 4*time.Second)}.as(retries, hints), late: busy, again: true},
		{name: "slept on a machine that has time", of: "deadline-hint", seen: Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, 4*time.Second)}.as(retries, hints), late: quiet},
		{name: "hardly slept", of: "deadline-hint", seen: Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, time.Second)}.as(retries, hints), late: busy},
		{name: "slept, and its time had begun long before", of: "deadline-hint", seen: Seen{Attempts: tries(30*time.Second, 2*time.Second), Finished: ended(false, 4*time.Second)}.as(retries, hints), late: busy, again: true},

		{name: "not hedged, and quick before", of: "hedge-get", seen: hedgeOf(25*ms, 1, false, true), late: busy},
		{name: "not hedged, and slow before", of: "hedge-get", seen: hedgeOf(400*ms, 1, false, true), late: busy, again: true},
		{name: "hedged, and slow before", of: "hedge-get", seen: hedgeOf(400*ms, 2, false, true), late: busy},
		{name: "it followed in time", of: "hint-301", seen: Seen{Attempts: tries(2*time.Second, 0, 2100*ms)}, late: busy, again: true},
		{name: "it followed at once", of: "hint-301", seen: Seen{Attempts: tries(2*time.Second, 0, ms)}, late: busy},

		{name: "short waits before first retries", of: "wait-broken", seen: waiting(60, 8*ms, ms), late: busy, again: true},
		{name: "short waits before second retries", of: "wait-broken", seen: waiting(60, ms, 8*ms), late: busy, again: true},
		{name: "no waits", of: "wait-broken", seen: waiting(60, ms, ms), late: busy},
		{name: "long waits", of: "wait-broken", seen: waiting(60, 100*ms, ms), late: busy},
		{name: "short waits", of: "status-429", seen: waiting(40, 8*ms), late: quiet, again: true},
		{name: "ended more than a share late", of: "deadline-share", seen: Seen{Attempts: tries(0, 0), Finished: ended(false, 6*time.Second)}, late: busy, again: true},
		{name: "a second POST on a connection of its own", of: "once-post-idle", seen: two(tries(0, 0), 2, Finished{}), late: busy, again: true},

		{name: "short waits", of: "hint-overflow", seen: callsWaiting(slices.Repeat([]time.Duration{8 * ms}, 40)...).as(retries, hints), late: busy, again: true},
		{name: "short waits of who reads no hints", of: "hint-overflow", seen: callsWaiting(slices.Repeat([]time.Duration{8 * ms}, 40)...), late: busy},
		{name: "no waits", of: "hint-overflow", seen: callsWaiting(slices.Repeat([]time.Duration{ms}, 40)...).as(retries, hints), late: busy},

		{name: "a refused stream, and its time was up", of: "h2-refused", seen: refused(1), late: busy, again: true},
		{name: "a refused stream, not repeated on a machine that has time", of: "h2-refused", seen: refused(1), late: quiet},
		{name: "a refused stream, repeated", of: "h2-refused", seen: refused(2), late: busy},
		{name: "a reset, not repeated", of: "broken-reset", seen: refused(1).as(retries, hints), late: busy, again: true},
		{name: "a 503, not repeated", of: "status-503", seen: refused(1).as(retries, hints), late: busy, again: true},
		{name: "a handshake, not made again", of: "broken-handshake", seen: Seen{Accepted: 1, Finished: ended(false, ms)}.as(retries, hints), late: busy, again: true},

		{name: "a second connection for a retry", of: "connection-retries", seen: onConnections(1, 2), late: busy, again: true},
		{name: "a second connection for a retry, on a machine that has time", of: "connection-retries", seen: onConnections(1, 2), late: quiet},
		{name: "one connection", of: "connection-retries", seen: onConnections(1, 1), late: busy},
		{name: "a second connection after a large body", of: "connection-large", seen: onConnections(1, 2), late: busy, again: true},
		{name: "many handshakes", of: "connection-storm", seen: storm(41, 60), late: busy, again: true},
		{name: "many handshakes on a machine that has time", of: "connection-storm", seen: storm(41, 60), late: quiet},
		{name: "few handshakes", of: "connection-storm", seen: storm(40, 60), late: busy},
		{name: "a second call on a connection of its own", of: "broken-idle", seen: two(tries(0, 0), 2, Finished{}), late: busy, again: true},
		{name: "a second call on a connection of its own, on a machine that has time", of: "broken-idle", seen: two(tries(0, 0), 2, Finished{}), late: quiet},
		{name: "a second call on the same connection", of: "broken-idle", seen: two(tries(0, 0), 1, Finished{}), late: busy},

		{name: "a cap with little jitter", of: "wait-cap", seen: capWithin(0.08), late: busy, again: true},
		{name: "a cap with little jitter, on a machine that has time", of: "wait-cap", seen: capWithin(0.08), late: quiet},
		{name: "a cap with much jitter", of: "wait-cap", seen: capWithin(0.5), late: busy},
		{name: "a cap without jitter", of: "wait-cap", seen: capWithin(0), late: busy},

		{name: "calls that fail after the outage", of: "recovery-back", seen: afterOutage(50, 10), late: busy, again: true},
		{name: "calls that fail after the outage, on a machine that has time", of: "recovery-back", seen: afterOutage(50, 10), late: quiet},
		{name: "calls that succeed after the outage", of: "recovery-back", seen: afterOutage(50, 40), late: busy},

		{name: "a POST, and slow before", of: "hedge-post", seen: hedgeOf(400*ms, 1, false, true), late: busy, again: true},

		// What is added to waits makes no jitter, and takes none away.
		{"constant", "wait-jitter", callsWaiting(each(200, func(time.Duration) time.Duration { return time.Second })...), quiet, Warn, false},
		{"constant, two of five late", "wait-jitter", callsWaiting(each(200, func(i time.Duration) time.Duration { return time.Second + max(0, i-120)*20*ms })...), quiet, Warn, false},
		{"full, two of five late", "wait-jitter", callsWaiting(each(200, func(i time.Duration) time.Duration { return i*ms/2 + max(0, i-120)*20*ms })...), quiet, Pass, false},
		{"±10 %", "wait-jitter", callsWaiting(each(200, func(i time.Duration) time.Duration { return 900*ms + i*ms })...), quiet, Pass, true},
		{"no waits", "wait-jitter", callsWaiting(each(200, func(i time.Duration) time.Duration { return i * ms / 60 })...), quiet, Warn, false},

		// Of retries that do not wait, a machine that is so busy that two of three are late still shows enough.
		{"a quiet machine", "wait-first", someLate(60, 0, ms, 0), 0, Fail, false},
		{"a busy one", "wait-first", someLate(60, 40, ms, 8*ms), 0, Fail, false},
		{"too busy to show it", "wait-first", someLate(60, 50, ms, 8*ms), 0, Pass, true},
		{"much too busy", "wait-first", someLate(60, 50, ms, 1000*ms), 20 * ms, Pass, true},
		{"a wait, much too busy", "wait-first", someLate(60, 50, 100*ms, 1000*ms), 20 * ms, Pass, false},
		{"a wait of 20 ms", "wait-first", someLate(60, 0, 20*ms, 0), 0, Pass, true},
		{"a wait of 100 ms", "wait-first", someLate(60, 0, 100*ms, 0), 0, Pass, false},
		{"from 0 to 50 ms", "wait-first", callsWaiting(each(60, func(i time.Duration) time.Duration { return 50 * ms * i / 60 })...), 0, Pass, true},
		{"from 0 to 200 ms", "wait-first", callsWaiting(each(60, func(i time.Duration) time.Duration { return 200 * ms * i / 60 })...), 0, Pass, false},
		{"too few calls to decide", "wait-first", someLate(14, 0, ms, 0), 0, NotApplicable, false},

		// What is added to each wait is no growth, and hides none.
		{"doubled", "wait-growth", growing(100, 0.2, 100*ms, 200*ms, 400*ms), 20 * ms, Pass, false},
		{"doubled, a few late", "wait-growth", delayed(growing(100, 0.2, 100*ms, 200*ms), 1, 40, 3000*ms), 20 * ms, Pass, false},
		{"doubled, all late", "wait-growth", delayed(growing(100, 0.2, 100*ms, 200*ms), 1, 100, 900*ms), 900 * ms, Warn, true},
		{"constant", "wait-growth", growing(100, 0, 100*ms, 100*ms, 100*ms), 5 * ms, Warn, false},
		{"constant, a few late", "wait-growth", delayed(growing(100, 0, 100*ms, 100*ms), 2, 40, 3000*ms), 5 * ms, Warn, false},
		{"constant, all late", "wait-growth", delayed(growing(100, 0, 100*ms, 100*ms), 2, 100, 900*ms), 900 * ms, Pass, true},
		{"one retry", "wait-growth", growing(100, 0, 100*ms), time.Second, NotApplicable, false},

		{"jitter that ends at the cap", "wait-cap", mixed(growing(200, 0.2, time.Second, 2*time.Second, 4*time.Second, 8*time.Second), 8*time.Second, 4), quiet, Warn, false},
		{"it grows by half", "wait-cap", growing(200, 0.5, 100*ms, 150*ms, 225*ms, 338*ms, 506*ms), quiet, NotApplicable, false},
		{"four retries", "wait-cap", growing(200, 0.2, time.Second, time.Second, time.Second, time.Second), quiet, NotApplicable, false},
		{"few clients", "wait-cap", growing(149, 0.2, time.Second, 2*time.Second, 4*time.Second, 8*time.Second, 8*time.Second, 8*time.Second, 8*time.Second), quiet, NotApplicable, false},

		// A machine that stalls now and then neither makes a herd nor hides one.
		{"all at once", "wait-herd", rounds(func(_, i int) int { return i / 4 }), quiet, Warn, false},
		{"spread", "wait-herd", rounds(func(_, i int) int { return i * 7 % 20 * 5 }), quiet, Pass, false},
		{"a spread round", "wait-herd", rounds(func(r, i int) int { return i * max(0, 1-r) * 5 }), quiet, Warn, false},
		{"two spread rounds", "wait-herd", rounds(func(r, i int) int { return i * max(0, 2-r) * 5 }), quiet, NotApplicable, true},
		{"a stall", "wait-herd", rounds(func(r, i int) int { return i * min(1, r) * 7 % 20 * 5 }), quiet, Pass, false},
		{"two stalls", "wait-herd", rounds(func(r, i int) int { return i * max(0, min(1, r-1)) * 7 % 20 * 5 }), quiet, NotApplicable, true},
		{"three are late", "wait-herd", rounds(func(_, i int) int { return max(0, i-16) * 50 }), quiet, Warn, false},

		// A client that limits its own rate is not failed for calls that it has not begun. One that lets no call through any more is.
		{"all succeed", "recovery-back", begun(50, 0, true), quiet, Pass, false},
		{"all fail at once", "recovery-back", begun(50, 0, false), quiet, Fail, false},
		{"most wait in the client", "recovery-back", begun(20, 150, true), quiet, Pass, false},
		{"nearly all wait, few made", "recovery-back", begun(5, 150, true), quiet, NotApplicable, false},
		{"none is made, and none ends", "recovery-back", begun(0, 150, false), quiet, NotApplicable, false},

		// Requests that have not arrived yet, and calls that were not made, show no circuit breaker.
		{"a breaker", "volume-breaker", breaking(40, 6), ms, Pass, false},
		{"none", "volume-breaker", breaking(40, 40), ms, NotApplicable, false},
		{"calls are missing", "volume-breaker", breaking(15, 4), ms, Pass, true},
		{"requests are late", "volume-breaker", breaking(40, 20), 200 * ms, Pass, true},
		{"too few for either", "volume-breaker", breaking(4, 4), 200 * ms, NotApplicable, true},
	} {
		s := c.seen
		s.Case, s.Late = caseNamed(c.of), c.late
		check.Equal(t, s.Case.maybeBusy(&s), c.again, "%s: %s: seen again", c.of, c.name)
		if got := s.graded(); c.grade != "" && got.Grade != c.grade {
			t.Errorf("%s: %s: %s (%s), want %s", c.of, c.name, got.Grade, got.Why, c.grade)
		}
	}
}

// each is a wait for each number below n.
func each(n int, wait func(i time.Duration) time.Duration) (list []time.Duration) {
	for i := range n {
		list = append(list, wait(time.Duration(i)))
	}
	return list
}

// someLate is n calls with a wait each, to which the machine adds something for the first ones.
func someLate(n, late int, wait, by time.Duration) Seen {
	return callsWaiting(append(slices.Repeat([]time.Duration{wait + by}, late), slices.Repeat([]time.Duration{wait}, n-late)...)...)
}

// rounds is the six rounds of wait-herd, whose clients wait for 100 ms, and so many more.
func rounds(more func(round, i int) (ms int)) Seen {
	return callsWaiting(each(120, func(n time.Duration) time.Duration { return 100*ms + time.Duration(more(int(n)/20, int(n)%20))*ms })...)
}

// begun is calls after the outage that are carried out and end so, and calls that wait in the client.
func begun(begun, waiting int, ok bool) Seen {
	s := afterOutage(begun+waiting, 0)
	for i := range s.Finished {
		if i >= begun {
			s.Finished[i].Ended = "the case is over"
		} else if ok {
			s.Finished[i].OK, s.Attempts = true, append(s.Attempts, Attempt{Call: i})
		}
	}
	return s
}

// onConnections is a call whose attempts came on those connections.
func onConnections(numbers ...int) Seen {
	var s Seen
	for i, n := range numbers {
		s.Attempts = append(s.Attempts, Attempt{Number: i + 1, Conn: n})
	}
	return s
}

// refused is a call over HTTP/2 of so many attempts, of which the second succeeds.
func refused(attempts int) Seen {
	list := tries(0, make([]time.Duration, attempts)...)
	list[len(list)-1].Good = attempts > 1
	return Seen{Proto2: true, Attempts: list, Finished: ended(attempts > 1, ms)}
}

// storm is twenty calls with so many handshakes and attempts.
func storm(accepted, attempts int) Seen {
	return Seen{Accepted: accepted, Attempts: make([]Attempt, attempts), Finished: make([]Finished, 20)}
}

// capWithin is waits that double up to 8 s, with so much jitter.
func capWithin(jitter float64) Seen {
	const s = time.Second
	return growing(200, jitter, s, 2*s, 4*s, 8*s, 8*s, 8*s, 8*s)
}

// A client that has not come yet has three times as long, if the machine is busy.
func TestAClientThatComesLate(t *testing.T) {
	const limit = 24 * time.Second
	for _, x := range []struct {
		name  string
		door  door
		late  time.Duration // of the machine
		comes time.Duration // zero: never
		want  time.Duration
	}{
		{name: "a machine that has time", late: usualLateness, want: limit},
		{name: "a busy one", late: usualLateness + 1, want: 3 * limit},
		{name: "a busy one, and it comes", late: usualLateness + 1, comes: limit + 5*time.Second, want: 2*limit + 5*time.Second},
		{name: "it comes in time", late: usualLateness + 1, comes: 5 * time.Second, want: limit + 5*time.Second},
		{name: "nobody listens", door: doorClosed, late: usualLateness + 1, want: limit},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := &grader{timers: &timerWatch{began: time.Now(), list: []tick{{at: time.Second, late: x.late}}}}
			l := newLog(1, func() {})
			ended := make(chan time.Duration, 1)
			timer := g.startTimer(Case{door: x.door}, l, limit, func() { ended <- time.Since(l.began) })
			defer timer.Stop()
			if x.comes > 0 {
				time.AfterFunc(x.comes, func() { l.arrive(Attempt{}) })
			}
			check.Equal(t, <-ended, x.want, "%s: the end", x.name)
		})
	}
}

// A changed client makes its calls by a function.
type changed struct {
	Client
	call func(ctx context.Context, s Session, c Call) Outcome
}

func (x changed) Start(ctx context.Context, e Env, stayUp bool) (Session, error) {
	session, err := x.Client.Start(ctx, e, stayUp)
	return changedSession{session, x}, err
}

type changedSession struct {
	Session
	by changed
}

func (s changedSession) Call(ctx context.Context, c Call) Outcome {
	return s.by.call(ctx, s.Session, c)
}

// unhurried is a client that does not regard its timeout.
func unhurried(client Client) Client {
	return changed{client, func(ctx context.Context, s Session, c Call) Outcome {
		c.Timeout = 0
		return s.Call(ctx, c)
	}}
}

// An attempt that came late is awaited again with the same times: with longer ones the client would make others.
func TestTheSameTimes(t *testing.T) {
	t.Parallel()
	c := caseNamed("deadline-retries")
	c.timeout = 100 * ms
	tries := 0
	c.maybeBusy = func(s *Seen) bool {
		tries++
		if len(s.Attempts) == 0 || s.Case.timeout != c.timeout {
			t.Errorf("try %d: %d attempts within %v", tries, len(s.Attempts), s.Case.timeout)
		}
		return true
	}
	g := must.Have(newGrader(unhurried(NetHTTP())))
	defer g.close()
	if s := g.runCase(t.Context(), c).seen; tries != mostTries || s.NoVerdict != "" {
		t.Errorf("%d tries, %q", tries, s.NoVerdict)
	}
}

// A verdict that stands is given although the machine was busy in each try; others are not.
func TestStands(t *testing.T) {
	t.Parallel()
	for _, stands := range []bool{false, true} {
		t.Run(fmt.Sprint(stands), func(t *testing.T) {
			t.Parallel()
			c := caseNamed("once-400")
			c.judgedWhenBusy = stands
			c.maybeBusy = func(s *Seen) bool {
				s.Late = time.Second
				return true
			}
			g := must.Have(newGrader(NetHTTP()))
			defer g.close()
			if s := g.runCase(t.Context(), c).seen; strings.HasPrefix(s.NoVerdict, tooBusy) == stands {
				t.Errorf("it is without a verdict because %q", s.NoVerdict)
			}
		})
	}
}

// stubborn is a client that ends when it is released, and not when its time is up.
type stubborn chan struct{}

func (s stubborn) Do(*http.Request) (*http.Response, error) {
	<-s
	return nil, io.ErrUnexpectedEOF
}

// A call ends when the client ends it. Its timeout is for the client alone: whoever ended the call for it would hide that it does not.
func TestNobodyEndsACallForTheClient(t *testing.T) {
	a := newAuthority()
	synctest.Test(t, func(t *testing.T) {
		client := make(stubborn)
		session := must.Have(HTTP("stubborn", func(*http.Transport) (Doer, error) { return client, nil }).Start(t.Context(), Env{CA: a.pem}, true))
		defer session.Close()
		ended := make(chan Outcome, 1)
		go func() {
			ended <- session.Call(t.Context(), Call{Method: "GET", URL: "http://127.0.0.1/", Timeout: time.Second})
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case o := <-ended:
			t.Errorf("after an hour somebody had ended it: %+v", o)
		default:
		}
		close(client)
		if o := <-ended; o.OK || o.Text != io.ErrUnexpectedEOF.Error() {
			t.Errorf("the client reported its error, and the outcome is %+v", o)
		}
	})
}
