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
		{"at once", noSleep, Seen{Case: patient, Attempts: tries(30*time.Second, 0), Finished: ended(false, 3000*ms), traits: claims}, Pass},
		{"slept into its deadline", noSleep, Seen{Case: patient, Attempts: tries(30*time.Second, 0), Finished: ended(false, 4*time.Second), traits: claims}, Warn},
		{"at once, after ten seconds in which its process started", noSleep, Seen{Case: patient, Attempts: tries(30*time.Second, 10*time.Second), Finished: ended(false, 10002*ms), traits: claims}, Pass},
		{"slept, after ten seconds in which its process started", noSleep, Seen{Case: patient, Attempts: tries(30*time.Second, 10*time.Second), Finished: ended(false, 14*time.Second), traits: claims}, Warn},
		{"slept, and connecting had taken one second of its four", noSleep, Seen{Case: patient, Attempts: tries(30*time.Second, time.Second), Finished: ended(false, 4001*ms), traits: claims}, Warn},
		{"in time, after ten seconds in which its process started", inTime, Seen{Case: timed, Attempts: tries(0, 10*time.Second), Finished: ended(false, 11*time.Second)}, Pass},
		{"a longer time is judged as generously", wholeCall, Seen{Case: Case{timeout: 4 * time.Second, times: 4}, Attempts: tries(0, 0, 6*time.Second)}, Pass},
		{"a longer time has an end, too", wholeCall, Seen{Case: Case{timeout: 4 * time.Second, times: 4}, Attempts: tries(0, 0, 6001*ms)}, Warn},
		{"who stops when the time is up, but sleeps first", wholeCall, Seen{Case: Case{timeout: 2 * time.Second}, Attempts: tries(0, 0, time.Second, 3*time.Second)}, Warn},
		{"slept past it", noSleep, Seen{Case: patient, Attempts: tries(30*time.Second, 0), Finished: ended(false, 8001*ms), traits: claims}, Warn},

		{"a day was refused", hugeHint, Seen{Attempts: tries(0, 0), Finished: ended(false, 2*ms), traits: claims}, Pass},
		{"a day was cut short", hugeHint, Seen{Attempts: tries(0, 0, time.Second), Finished: ended(true, time.Second), traits: claims}, Fail},
		{"the same bodies", sameBodies, Seen{Case: Case{body: 5}, Attempts: bodies("hello", "hello")}, Pass},
		{"with more around them", sameBodies, Seen{Case: Case{body: 5}, Attempts: bodies(`{"text":"hello"}`, `{"text":"hello"}`)}, Pass},
		{"another body", sameBodies, Seen{Case: Case{body: 5}, Attempts: bodies("hello", "other")}, Fail},
		{"half a body", sameBodies, Seen{Case: Case{body: 5}, Attempts: bodies("hel", "hel")}, Fail},
		{"one body", sameBodies, Seen{Case: Case{body: 5}, Attempts: bodies("hello")}, NotApplicable},
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

func bodies(texts ...string) []Attempt {
	var list []Attempt
	for i, text := range texts {
		list = append(list, Attempt{Number: i + 1, Length: int64(len(text)), Sum: text, Whole: true})
	}
	return list
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
}

// Of retries that do not wait, a machine that is so busy that two of three are late still shows
// enough; where it does not, the case is repeated.
func TestInstantRetriesOnABusyMachine(t *testing.T) {
	waits := func(n, late int, wait, by time.Duration) Seen {
		var list []time.Duration
		for i := range n {
			w := wait
			if i < late {
				w += by
			}
			list = append(list, w)
		}
		return callsWaiting(list...)
	}
	busy := func(s Seen) Seen {
		s.Late = 20 * ms
		return s
	}
	drawn := func(most time.Duration) Seen { // evenly from 0
		var list []time.Duration
		for i := range 60 {
			list = append(list, most*time.Duration(i)/60)
		}
		return callsWaiting(list...)
	}
	for name, c := range map[string]struct {
		seen   Seen
		want   Grade
		hidden bool
	}{
		"a quiet machine":         {waits(60, 0, ms, 0), Fail, false},
		"a busy one":              {waits(60, 40, ms, 8*ms), Fail, false},
		"too busy to show it":     {waits(60, 50, ms, 8*ms), Pass, true},
		"much too busy":           {busy(waits(60, 50, ms, 1000*ms)), Pass, true},
		"a wait, much too busy":   {busy(waits(60, 50, 100*ms, 1000*ms)), Pass, false},
		"a wait of 20 ms":         {waits(60, 0, 20*ms, 0), Pass, true},
		"a wait of 100 ms":        {waits(60, 0, 100*ms, 0), Pass, false},
		"from 0 to 50 ms":         {drawn(50 * ms), Pass, true},
		"from 0 to 200 ms":        {drawn(200 * ms), Pass, false},
		"too few calls to decide": {waits(14, 0, ms, 0), NotApplicable, false},
	} {
		if got := firstWait(&c.seen); got.Grade != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Grade, got.Why, c.want)
		}
		if got := mayHideThatThereWasNoWait(&c.seen); got != c.hidden {
			t.Errorf("%s: hidden is %v", name, got)
		}
		c.seen.traits.hints = true
		if got := overflowHint(&c.seen); (got.Grade == Fail) != (c.want == Fail) {
			t.Errorf("%s: a hint that overflows: %s (%s)", name, got.Grade, got.Why)
		}
		c.seen.traits.atOnce = true
		if got := overflowHint(&c.seen); got.Grade != Pass {
			t.Errorf("%s, and who always comes at once: a hint that overflows: %s (%s)", name, got.Grade, got.Why)
		}
	}
}

// The chance is that of the binomial distribution.
func TestUnlikely(t *testing.T) {
	for _, c := range []struct {
		n     int
		share float64
		want  int
	}{{60, 0.1, 18}, {100, 0.1, 25}, {200, 0.1, 40}, {10, 0.5, 10}, {0, 0.1, 0}} {
		if got := unlikely(c.n, c.share); got != c.want {
			t.Errorf("%d and %v: %d, want %d", c.n, c.share, got, c.want)
		}
	}
}

// What a busy machine adds to each wait is no growth, and hides none: then it is asked again.
func TestGrowthOnABusyMachine(t *testing.T) {
	for name, c := range map[string]struct {
		seen   Seen
		late   time.Duration
		want   Grade
		hidden bool
	}{
		"doubled":              {growing(100, 0.2, 100*ms, 200*ms, 400*ms), 20 * ms, Pass, false},
		"doubled, a few late":  {delayed(growing(100, 0.2, 100*ms, 200*ms), 1, 40, 3000*ms), 20 * ms, Pass, false},
		"doubled, all late":    {delayed(growing(100, 0.2, 100*ms, 200*ms), 1, 100, 900*ms), 900 * ms, Warn, true},
		"constant":             {growing(100, 0, 100*ms, 100*ms, 100*ms), 5 * ms, Warn, false},
		"constant, a few late": {delayed(growing(100, 0, 100*ms, 100*ms), 2, 40, 3000*ms), 5 * ms, Warn, false},
		"constant, all late":   {delayed(growing(100, 0, 100*ms, 100*ms), 2, 100, 900*ms), 900 * ms, Pass, true},
		"one retry":            {growing(100, 0, 100*ms), time.Second, NotApplicable, false},
	} {
		c.seen.Late = c.late
		if got := growth(&c.seen); got.Grade != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Grade, got.Why, c.want)
		}
		if got := mayHideThatTheyGrow(&c.seen); got != c.hidden {
			t.Errorf("%s: hidden is %v", name, got)
		}
	}
}

// delayed adds to the wait before a retry of the first n calls, and what follows on it.
func delayed(s Seen, retry, n int, by time.Duration) Seen {
	for i, a := range s.Attempts {
		if a.Call < n && a.Number > retry {
			s.Attempts[i].Arrived += by
			s.Attempts[i].Answered += by
		}
	}
	return s
}

// A client that limits its own rate is not failed for calls that it has not begun. One that
// lets no call through any more is.
func TestBackAfterAnOutage(t *testing.T) {
	seen := func(begun, waiting int, ok bool) Seen {
		s := Seen{Case: Case{script: []answer{{until: time.Second}}}}
		for i := range begun + waiting {
			f := Finished{Call: i, Start: 5 * time.Second, OK: ok && i < begun}
			if i >= begun {
				f.Ended = "the case is over"
			}
			s.Finished = append(s.Finished, f)
			if ok && i < begun {
				s.Attempts = append(s.Attempts, Attempt{Call: i})
			}
		}
		return s
	}
	for name, c := range map[string]struct {
		seen Seen
		want Grade
	}{
		"all succeed":                 {seen(50, 0, true), Pass},
		"all fail at once":            {seen(50, 0, false), Fail},
		"most wait in the client":     {seen(20, 150, true), Pass},
		"nearly all wait, few made":   {seen(5, 150, true), NotApplicable},
		"none is made, and none ends": {seen(0, 150, false), NotApplicable},
	} {
		if got := back(&c.seen); got.Grade != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Grade, got.Why, c.want)
		}
	}
}

// Requests that have not arrived yet, and calls that were not made, show no circuit breaker.
func TestABreakerOnABusyMachine(t *testing.T) {
	seen := func(calls, requests int) Seen {
		s := Seen{Case: Case{plan: plan{every: 50 * ms}}}
		for i := range calls {
			s.Finished = append(s.Finished, Finished{Start: 4*time.Second + time.Duration(i)*50*ms})
		}
		for range requests {
			s.Attempts = append(s.Attempts, Attempt{Arrived: 5 * time.Second})
		}
		return s
	}
	for name, c := range map[string]struct {
		seen   Seen
		late   time.Duration
		want   Grade
		hidden bool
	}{
		"a breaker":          {seen(40, 6), ms, Pass, false},
		"none":               {seen(40, 40), ms, NotApplicable, false},
		"calls are missing":  {seen(15, 4), ms, Pass, true},
		"requests are late":  {seen(40, 20), 200 * ms, Pass, true},
		"too few for either": {seen(4, 4), 200 * ms, NotApplicable, true},
	} {
		c.seen.Late = c.late
		if got := sheds(&c.seen); got.Grade != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Grade, got.Why, c.want)
		}
		if got := mayHideABreaker(&c.seen); got != c.hidden {
			t.Errorf("%s: hidden is %v", name, got)
		}
	}
}

// What a machine adds now and then neither makes a herd nor hides one.
func TestHerdOnABusyMachine(t *testing.T) {
	rounds := func(wait func(round, i int) time.Duration) Seen {
		var list []time.Duration
		for round := range 6 {
			for i := range 20 {
				list = append(list, wait(round, i))
			}
		}
		return callsWaiting(list...)
	}
	spread := func(i int) time.Duration { return 100*ms + time.Duration(i*7%20)*5*ms }
	for name, c := range map[string]struct {
		wait   func(round, i int) time.Duration
		want   Grade
		hidden bool
	}{
		"all at once":       {func(_, i int) time.Duration { return 100*ms + time.Duration(i)*ms/4 }, Warn, false},
		"spread":            {func(_, i int) time.Duration { return spread(i) }, Pass, false},
		"a spread round":    {func(r, i int) time.Duration { return 100*ms + time.Duration(i*max(0, 1-r))*5*ms }, Warn, false},
		"two spread rounds": {func(r, i int) time.Duration { return 100*ms + time.Duration(i*max(0, 2-r))*5*ms }, NotApplicable, true},
		"a stall":           {func(r, i int) time.Duration { return spread(i * min(1, r)) }, Pass, false},
		"two stalls":        {func(r, i int) time.Duration { return spread(i * max(0, min(1, r-1))) }, NotApplicable, true},
		"three are late":    {func(_, i int) time.Duration { return 100*ms + time.Duration(max(0, i-16))*50*ms }, Warn, false},
	} {
		s := rounds(c.wait)
		if got := herd(20)(&s); got.Grade != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Grade, got.Why, c.want)
		}
		if got := mayDriveAHerdApart(20)(&s); got != c.hidden {
			t.Errorf("%s: hidden is %v", name, got)
		}
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
