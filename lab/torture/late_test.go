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

	"github.com/lullgo/lull/internal/must"
)

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where timers are never late
		w := newWatch()
		defer w.close()
		began := time.Now()
		if got := w.late(began); got != 0 {
			t.Errorf("before the first tick it is %v", got)
		}
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
			if got := w.late(began.Add(from)); got != want {
				t.Errorf("from %v on it is %v, want %v", from, got, want)
			}
		}
	})
}

// afterTheOutage is what is seen of fifty calls after it, of which that many succeed.
func afterTheOutage(succeed int) (s Seen) {
	for i := range 50 {
		s.Finished = append(s.Finished, Finished{Call: i, Start: 7 * time.Second, End: 8 * time.Second, OK: i < succeed})
	}
	return s
}

// caseNamed returns a case.
func caseNamed(name string) Case { return must.Have(Select([]string{name}))[0] }

// What a busy machine may have done is seen again, and what it cannot have done is not.
func TestWhatABusyMachineMayHide(t *testing.T) {
	const quiet, busy = punctual, punctual + 1
	claims := traits{retries: true, hints: true}
	// calls are those before the slow one, which took so long; the slow one was hedged or not.
	calls := func(took time.Duration, hedged bool) Seen {
		var s Seen
		for i := range hedgedCall + 1 {
			s.Finished = append(s.Finished, Finished{Call: i, End: took, OK: true})
		}
		s.Attempts = []Attempt{{Call: hedgedCall, Number: 1}}
		if hedged {
			s.Attempts = append(s.Attempts, Attempt{Call: hedgedCall, Number: 2, Arrived: time.Second})
		}
		return s
	}
	for _, c := range []struct {
		name, of string
		seen     Seen
		late     time.Duration
		want     bool
	}{
		{name: "it came when asked", of: "hint-seconds-503", seen: Seen{Attempts: tries(2*time.Second, 0, 2100*ms)}, late: busy, want: true},
		{name: "it came when asked, on a machine that has time", of: "hint-seconds-503", seen: Seen{Attempts: tries(2*time.Second, 0, 2100*ms)}, late: quiet},
		{name: "it came too early", of: "hint-seconds-503", seen: Seen{Attempts: tries(2*time.Second, 0, 1900*ms)}, late: busy},
		{name: "it did not come back", of: "hint-413", seen: Seen{Attempts: tries(2*time.Second, 0)}, late: busy},

		{name: "ended in time", of: "deadline-silent", seen: Seen{Attempts: tries(0, 0), Finished: ended(false, time.Second)}, late: busy},
		{name: "ended late", of: "deadline-silent", seen: Seen{Attempts: tries(0, 0), Finished: ended(false, 6*time.Second)}, late: busy, want: true},
		{name: "ended late on a machine that has time", of: "deadline-silent", seen: Seen{Attempts: tries(0, 0), Finished: ended(false, 6*time.Second)}, late: quiet},
		{name: "never ended", of: "deadline-silent", seen: Seen{Attempts: tries(0, 0), Finished: []Finished{{End: 24 * time.Second, Ended: "limit"}}}, late: busy},
		{name: "its time was up before it arrived", of: "deadline-silent", seen: Seen{Finished: ended(false, time.Second)}, late: quiet, want: true},
		{name: "its time was up before its POST arrived", of: "once-post-timeout", seen: Seen{Finished: ended(false, 3*time.Second)}, late: quiet, want: true},
		{name: "a late attempt", of: "deadline-attempts", seen: Seen{Attempts: tries(0, 0, 1600*ms), Finished: ended(false, 1600*ms)}, late: busy, want: true},
		{name: "slept", of: "deadline-hint", seen: Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, 4*time.Second), traits: claims}, late: busy, want: true},
		{name: "slept on a machine that has time", of: "deadline-hint", seen: Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, 4*time.Second), traits: claims}, late: quiet},
		{name: "hardly slept", of: "deadline-hint", seen: Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, time.Second), traits: claims}, late: busy},
		{name: "slept, and its time had begun long before", of: "deadline-hint", seen: Seen{Attempts: tries(30*time.Second, 2*time.Second), Finished: ended(false, 4*time.Second), traits: claims}, late: busy, want: true},

		{name: "not hedged, and quick before", of: "hedge-get", seen: calls(25*ms, false), late: busy},
		{name: "not hedged, and slow before", of: "hedge-get", seen: calls(400*ms, false), late: busy, want: true},
		{name: "hedged, and slow before", of: "hedge-get", seen: calls(400*ms, true), late: busy},
		{name: "it followed in time", of: "hint-301", seen: Seen{Attempts: tries(2*time.Second, 0, 2100*ms)}, late: busy, want: true},
		{name: "it followed at once", of: "hint-301", seen: Seen{Attempts: tries(2*time.Second, 0, ms)}, late: busy},

		{name: "short waits before first retries", of: "wait-broken", seen: waiting(60, 8*ms, ms), late: busy, want: true},
		{name: "short waits before second retries", of: "wait-broken", seen: waiting(60, ms, 8*ms), late: busy, want: true},
		{name: "no waits", of: "wait-broken", seen: waiting(60, ms, ms), late: busy},
		{name: "long waits", of: "wait-broken", seen: waiting(60, 100*ms, ms), late: busy},
		{name: "short waits", of: "status-429", seen: waiting(40, 8*ms), late: quiet, want: true},
		{name: "ended more than a share late", of: "deadline-share", seen: Seen{Attempts: tries(0, 0), Finished: ended(false, 6*time.Second)}, late: busy, want: true},
		{name: "a second POST on a connection of its own", of: "once-post-idle", seen: idleOn(2), late: busy, want: true},

		{name: "short waits", of: "hint-overflow", seen: withTraits(callsWaiting(slices.Repeat([]time.Duration{8 * ms}, 40)...), claims), late: busy, want: true},
		{name: "short waits of who reads no hints", of: "hint-overflow", seen: callsWaiting(slices.Repeat([]time.Duration{8 * ms}, 40)...), late: busy},
		{name: "no waits", of: "hint-overflow", seen: withTraits(callsWaiting(slices.Repeat([]time.Duration{ms}, 40)...), claims), late: busy},

		{name: "a refused stream, and its time was up", of: "h2-refused", seen: refused(1), late: busy, want: true},
		{name: "a refused stream, not repeated on a machine that has time", of: "h2-refused", seen: refused(1), late: quiet},
		{name: "a refused stream, repeated", of: "h2-refused", seen: refused(2), late: busy},
		{name: "a reset, not repeated", of: "broken-reset", seen: withTraits(refused(1), claims), late: busy, want: true},
		{name: "a 503, not repeated", of: "status-503", seen: withTraits(refused(1), claims), late: busy, want: true},
		{name: "a handshake, not made again", of: "broken-handshake", seen: withTraits(Seen{Accepted: 1, Finished: ended(false, ms)}, claims), late: busy, want: true},

		{name: "a second connection for a retry", of: "connection-retries", seen: onConnections(1, 2), late: busy, want: true},
		{name: "a second connection for a retry, on a machine that has time", of: "connection-retries", seen: onConnections(1, 2), late: quiet},
		{name: "one connection", of: "connection-retries", seen: onConnections(1, 1), late: busy},
		{name: "a second connection after a large body", of: "connection-large", seen: onConnections(1, 2), late: busy, want: true},
		{name: "many handshakes", of: "connection-storm", seen: storm(41, 60), late: busy, want: true},
		{name: "many handshakes on a machine that has time", of: "connection-storm", seen: storm(41, 60), late: quiet},
		{name: "few handshakes", of: "connection-storm", seen: storm(40, 60), late: busy},
		{name: "a second call on a connection of its own", of: "broken-idle", seen: idleOn(2), late: busy, want: true},
		{name: "a second call on a connection of its own, on a machine that has time", of: "broken-idle", seen: idleOn(2), late: quiet},
		{name: "a second call on the same connection", of: "broken-idle", seen: idleOn(1), late: busy},

		{name: "a cap with little jitter", of: "wait-cap", seen: capWithin(0.08), late: busy, want: true},
		{name: "a cap with little jitter, on a machine that has time", of: "wait-cap", seen: capWithin(0.08), late: quiet},
		{name: "a cap with much jitter", of: "wait-cap", seen: capWithin(0.5), late: busy},
		{name: "a cap without jitter", of: "wait-cap", seen: capWithin(0), late: busy},

		{name: "calls that fail after the outage", of: "recovery-back", seen: afterTheOutage(10), late: busy, want: true},
		{name: "calls that fail after the outage, on a machine that has time", of: "recovery-back", seen: afterTheOutage(10), late: quiet},
		{name: "calls that succeed after the outage", of: "recovery-back", seen: afterTheOutage(40), late: busy},

		{name: "a POST, and slow before", of: "hedge-post", seen: calls(400*ms, false), late: busy, want: true},
	} {
		s := c.seen
		s.Case, s.Late = caseNamed(c.of), c.late
		if got := s.Case.hidden(&s); got != c.want {
			t.Errorf("%s: %s: %v, want %v", c.of, c.name, got, c.want)
		}
	}
}

func withTraits(s Seen, t traits) Seen {
	s.traits = t
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

// idleOn is two calls, the second one on that connection.
func idleOn(number int) Seen {
	return Seen{Attempts: []Attempt{{Number: 1, Conn: 1}, {Call: 1, Number: 1, Conn: number}}, Finished: make([]Finished, 2)}
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
		{name: "a machine that has time", late: punctual, want: limit},
		{name: "a busy one", late: punctual + 1, want: 3 * limit},
		{name: "a busy one, and it comes", late: punctual + 1, comes: limit + 5*time.Second, want: 2*limit + 5*time.Second},
		{name: "it comes in time", late: punctual + 1, comes: 5 * time.Second, want: limit + 5*time.Second},
		{name: "nobody listens", door: doorClosed, late: punctual + 1, want: limit},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := &grader{watch: &watch{began: time.Now(), list: []tick{{at: time.Second, late: x.late}}}}
			l := newLog(1, func() {})
			ended := make(chan time.Duration, 1)
			timer := g.limited(Case{door: x.door}, l, limit, func() { ended <- time.Since(l.began) })
			defer timer.Stop()
			if x.comes > 0 {
				time.AfterFunc(x.comes, func() { l.arrive(Attempt{}) })
			}
			if got := <-ended; got != x.want {
				t.Errorf("%s: it is ended after %v, want %v", x.name, got, x.want)
			}
		})
	}
}

// unhurried is a client that does not regard its timeout.
type unhurried struct{ Client }

func (u unhurried) Start(ctx context.Context, e Env, stayUp bool) (Session, error) {
	session, err := u.Client.Start(ctx, e, stayUp)
	return unhurriedSession{session}, err
}

type unhurriedSession struct{ Session }

func (u unhurriedSession) Call(ctx context.Context, c Call) Outcome {
	c.Timeout = 0
	return u.Session.Call(ctx, c)
}

// An attempt that came late is awaited again with the same times: with longer ones the client would make others.
func TestTheSameTimes(t *testing.T) {
	t.Parallel()
	c := caseNamed("deadline-retries")
	c.timeout = 100 * ms
	tries := 0
	c.hidden = func(s *Seen) bool {
		tries++
		if len(s.Attempts) == 0 || s.Case.timeout != c.timeout {
			t.Errorf("try %d: %d attempts within %v", tries, len(s.Attempts), s.Case.timeout)
		}
		return true
	}
	g := must.Have(newGrader(unhurried{NetHTTP()}))
	defer g.close()
	if s := g.surely(t.Context(), c).seen; tries != mostTries || s.Without != "" {
		t.Errorf("%d tries, %q", tries, s.Without)
	}
}

// A verdict that stands is given although the machine was busy in each try; others are not.
func TestStands(t *testing.T) {
	t.Parallel()
	for _, stands := range []bool{false, true} {
		t.Run(fmt.Sprint(stands), func(t *testing.T) {
			t.Parallel()
			c := caseNamed("once-400")
			c.stands = stands
			c.hidden = func(s *Seen) bool {
				s.Late = time.Second
				return true
			}
			g := must.Have(newGrader(NetHTTP()))
			defer g.close()
			if s := g.surely(t.Context(), c).seen; strings.HasPrefix(s.Without, tooBusy) == stands {
				t.Errorf("it is without a verdict because %q", s.Without)
			}
		})
	}
}

// A connection that came back late is luck; one for each call is not.
func TestReuseOnABusyMachine(t *testing.T) {
	for connections, want := range map[int]Grade{1: Pass, 2: Pass, 5: Pass, 6: Warn, 10: Warn} {
		var s Seen
		for i := range 10 {
			s.Finished = append(s.Finished, Finished{Call: i, OK: true})
			s.Attempts = append(s.Attempts, Attempt{Call: i, Number: 1, Conn: i % connections})
		}
		s.Case = caseNamed("connection-calls")
		if v := s.graded(); v.Grade != want {
			t.Errorf("%d connections: %s (%s), want %s", connections, v.Grade, v.Why, want)
		}
	}
}

// A pool that has room for half of the calls makes a new handshake for at most half of the retries, however
// many of them meet. One that keeps nothing makes one for each.
func TestHandshakesOnABusyMachine(t *testing.T) {
	for _, x := range []struct {
		accepted, attempts int
		want               Grade
	}{{1, 60, Pass}, {20, 60, Pass}, {30, 60, Pass}, {40, 60, Pass}, {41, 60, Warn}, {56, 60, Warn}, {60, 60, Warn}, {25, 20, Pass}, {26, 20, Warn}, {30, 40, Pass}, {31, 40, Warn}} {
		s := storm(x.accepted, x.attempts)
		s.Case = caseNamed("connection-storm")
		if v := s.graded(); v.Grade != x.want {
			t.Errorf("%d handshakes for %d attempts of 20 calls: %s (%s), want %s", x.accepted, x.attempts, v.Grade, v.Why, x.want)
		}
	}
}

// How many calls come while the server is slow depends on the machine, and how many requests each of them
// is does not.
func TestASlowServerOnABusyMachine(t *testing.T) {
	c := Case{script: []answer{{from: time.Second}}, judge: hedgedSlow, rules: caseNamed("hedge-slow").rules}
	for _, x := range []struct {
		before, slow, hedged int
		want                 Grade
	}{{125, 95, 95, Warn}, {125, 95, 47, Pass}, {125, 95, 48, Warn}, {60, 160, 80, Pass}, {60, 160, 81, Warn}, {200, 14, 14, NotApplicable}} {
		s := Seen{Case: c, traits: traits{hedges: true}}
		for i := range x.before + x.slow {
			at := time.Duration(0)
			if i >= x.before {
				at = time.Second
			}
			s.Finished = append(s.Finished, Finished{Call: i})
			s.Attempts = append(s.Attempts, Attempt{Call: i, Number: 1, Arrived: at})
			if i < x.before || i < x.before+x.hedged { // a hedge before is no sign
				s.Attempts = append(s.Attempts, Attempt{Call: i, Number: 2, Arrived: time.Second})
			}
		}
		if v := s.graded(); v.Grade != x.want {
			t.Errorf("%d calls before and %d while it is slow, %d of those hedged: %s (%s), want %s", x.before, x.slow, x.hedged, v.Grade, v.Why, x.want)
		}
	}
}

// A crowd of retries is a herd, unless the first attempts of calls come in a crowd, too: then the client had
// no time.
func TestAHerdOnABusyMachine(t *testing.T) {
	c := Case{plan: plan{every: 20 * time.Millisecond}, script: []answer{{until: 3 * time.Second}}, judge: afterwards, rules: caseNamed("recovery-herd").rules}
	for _, x := range []struct {
		calls, retries int // in the half second after the outage, where 25 calls are usual
		want           Grade
	}{{25, 25, Pass}, {25, 50, Pass}, {25, 51, Warn}, {5, 51, Warn}, {60, 117, Pass}, {60, 130, Warn}} {
		s := Seen{Case: c, traits: traits{retries: true}}
		for i := range x.calls {
			s.Attempts = append(s.Attempts, Attempt{Call: i, Number: 1, Arrived: 3100 * time.Millisecond})
		}
		for i := range x.retries {
			s.Attempts = append(s.Attempts, Attempt{Call: i, Number: 2, Arrived: 3100 * time.Millisecond})
		}
		if v := s.graded(); v.Grade != x.want {
			t.Errorf("%d first attempts and %d retries: %s (%s), want %s", x.calls, x.retries, v.Grade, v.Why, x.want)
		}
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
	a := must.Have(newAuthority())
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
