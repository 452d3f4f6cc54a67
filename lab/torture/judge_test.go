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

// gradedAs is the verdict on what is seen as if it were of a case, whose plan and script it keeps if it has some.
func gradedAs(name string, s *Seen) Verdict {
	c := caseNamed(name)
	if s.Case.judge == nil && (s.Case.script != nil || s.Case.plan != plan{}) {
		c.plan, c.script = s.Case.plan, s.Case.script
	}
	s.Case = c
	return s.graded()
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
		if got := gradedAs("wait-jitter", &s); got.Grade != c.want {
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
		if got := gradedAs("wait-first", &c.seen); got.Grade != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got.Grade, got.Why, c.want)
		}
		if got := mayHideThatThereWasNoWait(&c.seen); got != c.hidden {
			t.Errorf("%s: hidden is %v", name, got)
		}
		c.seen.traits.hints = true
		if got := gradedAs("hint-overflow", &c.seen); (got.Grade == Fail) != (c.want == Fail) {
			t.Errorf("%s: a hint that overflows: %s (%s)", name, got.Grade, got.Why)
		}
		c.seen.traits.atOnce = true
		if got := gradedAs("hint-overflow", &c.seen); got.Grade != Pass {
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
		if got := gradedAs("wait-growth", &c.seen); got.Grade != c.want {
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
		if got := gradedAs("recovery-back", &c.seen); got.Grade != c.want {
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
		if got := gradedAs("volume-breaker", &c.seen); got.Grade != c.want {
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
		if got := gradedAs("wait-herd", &s); got.Grade != c.want {
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
		if got := gradedAs("wait-cap", &c.seen); got.Grade != c.want {
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
