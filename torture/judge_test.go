package torture

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// tries are attempts of one call: each is answered at once, and asks for a wait.
func tries(wait time.Duration, arrived ...time.Duration) []Attempt {
	var list []Attempt
	for i, at := range arrived {
		a := Attempt{Number: i + 1, Arrived: at, Answered: at + ms}
		if wait > 0 {
			a.NotBefore = a.Answered + wait
		}
		list = append(list, a)
	}
	return list
}

func ended(ok bool, at time.Duration) []Finished { return []Finished{{End: at, OK: ok}} }

// The bounds of the judges. Lower ones are exact, but for the millisecond of a timer.
func TestJudges(t *testing.T) {
	claims := traits{retries: true, hints: true}
	timed := Case{timeout: time.Second}
	patient := Case{timeout: 4 * time.Second}
	for _, c := range []struct {
		name  string
		judge func(*Seen) Verdict
		seen  Seen
		want  Grade
	}{
		{"a hint is kept", hint(Fail), Seen{Attempts: tries(2*time.Second, 0, 2001*ms), traits: claims}, Pass},
		{"a timer that counts milliseconds", hint(Fail), Seen{Attempts: tries(2*time.Second, 0, 2000*ms), traits: claims}, Pass},
		{"a hint is cut short", hint(Fail), Seen{Attempts: tries(2*time.Second, 0, 1999*ms), traits: claims}, Fail},
		{"the second is cut short", hint(Fail), Seen{Attempts: tries(2*time.Second, 0, 2500*ms, 3*time.Second), traits: claims}, Fail},
		{"who reads no hints", hint(Fail), Seen{Attempts: tries(2*time.Second, 0, 100*ms), traits: traits{retries: true}}, NotApplicable},
		{"who makes no retries", hint(Fail), Seen{Attempts: tries(2*time.Second, 0), Finished: ended(false, 2*ms)}, NotApplicable},
		{"who gives up", hint(Fail), Seen{Attempts: tries(2*time.Second, 0), Finished: ended(false, 2*ms), traits: claims}, Pass},

		{"it was repeated", repeated(true), Seen{Attempts: tries(0, 0, 100*ms), Finished: ended(true, 102*ms), Case: Case{script: failing(503)}, traits: claims}, Pass},
		{"it was not", repeated(true), Seen{Attempts: tries(0, 0), Finished: ended(false, 2*ms), Case: Case{script: failing(503)}, traits: claims}, Warn},
		{"it need not be", repeated(false), Seen{Attempts: tries(0, 0), Finished: ended(false, 2*ms), Case: Case{script: failing(500)}, traits: claims}, Pass},
		{"a success of a failure", repeated(true), Seen{Attempts: tries(0, 0), Finished: ended(true, 2*ms), Case: Case{script: failing(503)}, traits: claims}, Fail},
		{"a failure of a success", repeated(true), Seen{Attempts: tries(0, 0, ms, 2*ms), Finished: ended(false, 2*ms), Case: Case{script: failing(503)}, traits: claims}, Fail},

		{"once", once(Fail), Seen{Attempts: tries(0, 0), Finished: ended(false, ms)}, Pass},
		{"twice", once(Warn), Seen{Attempts: tries(0, 0, ms), Finished: ended(false, ms)}, Warn},

		{"in time", inTime, Seen{Case: timed, Attempts: tries(0, 0), Finished: ended(false, time.Second)}, Pass},
		{"in time on a busy machine", inTime, Seen{Case: timed, Attempts: tries(0, 0), Finished: ended(false, 5*time.Second)}, Pass},
		{"not in time", inTime, Seen{Case: timed, Attempts: tries(0, 0), Finished: ended(false, 5001*ms)}, Warn},
		{"without end", inTime, Seen{Case: timed, Attempts: tries(0, 0), Finished: []Finished{{End: 24 * time.Second, Ended: "limit"}}}, Fail},
		{"none too late", wholeCall, Seen{Case: timed, Attempts: tries(0, 0, 1500*ms)}, Pass},
		{"one too late", wholeCall, Seen{Case: timed, Attempts: tries(0, 0, 1501*ms)}, Warn},
		{"at once", noSleep, Seen{Case: patient, Attempts: tries(30*time.Second, 0), Finished: ended(false, 3999*ms), traits: claims}, Pass},
		{"slept into its deadline", noSleep, Seen{Case: patient, Attempts: tries(30*time.Second, 0), Finished: ended(false, 4*time.Second), traits: claims}, Warn},
		{"slept past it", noSleep, Seen{Case: patient, Attempts: tries(30*time.Second, 0), Finished: ended(false, 8001*ms), traits: claims}, Warn},

		{"a day was refused", hugeHint, Seen{Attempts: tries(0, 0), Finished: ended(false, 2*ms), traits: claims}, Pass},
		{"a day was cut short", hugeHint, Seen{Attempts: tries(0, 0, time.Second), Finished: ended(true, time.Second), traits: claims}, Fail},
		{"one key", sameKey, Seen{Attempts: keyed("a", "a"), traits: claims}, Pass},
		{"two keys", sameKey, Seen{Attempts: keyed("a", "b"), traits: claims}, Fail},
		{"no key", sameKey, Seen{Attempts: keyed("", ""), traits: claims}, NotApplicable},
		{"a key of its own", onceWithoutKey(Fail), Seen{Attempts: keyed("a", "a"), traits: claims}, Pass},
		{"a key for each attempt", onceWithoutKey(Fail), Seen{Attempts: keyed("a", "b"), traits: claims}, Fail},
	} {
		if got := c.judge(&c.seen); got.Grade != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, got.Grade, got.Why, c.want)
		}
	}
}

func keyed(keys ...string) []Attempt {
	list := tries(0, 0, ms)
	for i, key := range keys {
		list[i].Header = map[string][]string{"Idempotency-Key": {key}}
	}
	return list
}

// calls are the first waits of as many calls.
func callsWaiting(waits ...time.Duration) Seen {
	s := Seen{traits: traits{retries: true}}
	for i, w := range waits {
		s.Attempts = append(s.Attempts, Attempt{Call: i, Number: 1, Answered: ms}, Attempt{Call: i, Number: 2, Arrived: ms + w})
	}
	return s
}

// Time that a busy machine adds makes no jitter, and takes none away.
func TestJitterOnABusyMachine(t *testing.T) {
	var constant, noisy, full, small, none []time.Duration
	for i := range 200 {
		step := time.Duration(i)
		constant = append(constant, 1000*ms)
		noisy = append(noisy, 1000*ms+max(0, step-120)*20*ms) // two of five are late, by up to 1.6 s
		full = append(full, step*ms/2+max(0, step-120)*20*ms)
		small = append(small, 900*ms+step*ms)
		none = append(none, step*ms/60)
	}
	for name, c := range map[string]struct {
		waits []time.Duration
		want  Grade
	}{"constant": {constant, Warn}, "noisy": {noisy, Warn}, "full": {full, Pass}, "±10 %": {small, Pass}, "none": {none, Warn}, "few": {full[:10], NotApplicable}} {
		s := callsWaiting(c.waits...)
		if got := jitter(&s); got.Grade != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Grade, got.Why, c.want)
		}
	}
	apart := callsWaiting(full[:50]...)
	if got := herd(50)(&apart); got.Grade != Warn { // 0 to 25 ms, nearly
		t.Errorf("all within 20 ms: %s (%s)", got.Grade, got.Why)
	}
	apart = callsWaiting(full[50:100]...)
	for i := range apart.Attempts {
		apart.Attempts[i].Arrived *= 4
	}
	if got := herd(50)(&apart); got.Grade != Pass { // 100 to 200 ms
		t.Errorf("apart: %s (%s)", got.Grade, got.Why)
	}
}

// A call that waits longer and longer, up to a cap, with so much jitter: n calls.
func growing(n int, jitter float64, waits ...time.Duration) Seen {
	s := Seen{traits: traits{retries: true}}
	for i := range n {
		at := time.Duration(0)
		for k, w := range append([]time.Duration{0}, waits...) {
			share := float64((i*37+k*11)%n)/float64(n) - 0.5
			at += w + time.Duration(2*jitter*share*float64(w))
			s.Attempts = append(s.Attempts, Attempt{Call: i, Number: k + 1, Arrived: at, Answered: at + 1})
		}
	}
	return s
}

func TestTheLongestWait(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		seen Seen
		want Grade
	}{
		"a cap with jitter":           {growing(200, 0.2, s, 2*s, 4*s, 8*s, 8*s, 8*s, 8*s), Pass},
		"a cap without":               {growing(200, 0, s, 2*s, 4*s, 8*s, 8*s, 8*s, 8*s), Warn},
		"no cap yet":                  {growing(200, 0.2, s, 2*s, 4*s, 8*s, 16*s), NotApplicable},
		"it grows by half":            {growing(200, 0.5, 100*ms, 150*ms, 225*ms, 338*ms, 506*ms), NotApplicable},
		"it does not grow":            {growing(200, 0.2, s, s, s, s, s, s), NotApplicable},
		"four retries":                {growing(200, 0.2, s, s, s, s), NotApplicable},
		"few clients":                 {growing(149, 0.2, s, 2*s, 4*s, 8*s, 8*s, 8*s, 8*s), NotApplicable},
		"jitter that ends at the cap": {mixed(growing(200, 0.2, s, 2*s, 4*s, 8*s), 8*s, 4), Warn},
	} {
		if got := capped(&c.seen); got.Grade != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Grade, got.Why, c.want)
		}
	}
}

// mixed adds n constant waits to each call.
func mixed(s Seen, wait time.Duration, n int) Seen {
	var list []Attempt
	for i, a := range s.Attempts {
		list = append(list, a)
		if i+1 == len(s.Attempts) || s.Attempts[i+1].Call != a.Call {
			for range n {
				a.Number++
				a.Arrived += wait + 1
				a.Answered = a.Arrived + 1
				list = append(list, a)
			}
		}
	}
	s.Attempts = list
	return s
}
