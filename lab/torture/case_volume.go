package torture

import "time"

func volumeCases() []Case {
	const budget = "SRE book, Handling Overload: a retry budget of 10 % for each client"
	return []Case{
		{Name: "volume-outage", Does: "answers a thousand calls of one process with 503", Source: budget,
			plan: plan{calls: 1000, every: 5 * time.Millisecond}, limit: 45 * time.Second, script: []answer{{status: 503}},
			exempt: (*Seen).noRetry, judge: volume, rules: rules{Pass: {fewMore}, Warn: {manyMore}, NotApplicable: {noRetries}}},
		{Name: "volume-brown-out", Does: "answers a third of all requests with 503", Source: budget,
			plan: plan{calls: 300, every: 10 * time.Millisecond}, limit: 45 * time.Second, script: []answer{{status: 503, share: 1. / 3}},
			exempt: (*Seen).noRetry, judge: brownOut, rules: rules{Pass: {atMostTwice}, Warn: {moreThanTwice}, NotApplicable: {noRetries}}},
		{Name: "volume-layers", Does: "is the last of three services that call each other with the client, and answers with 503", Source: "SRE book, Addressing Cascading Failures: retry at one level",
			plan: plan{calls: 20, every: 50 * time.Millisecond, layers: 2}, limit: 45 * time.Second, script: []answer{{status: 503}},
			exempt: (*Seen).noRetry, judge: layered, rules: rules{Pass: {didNotMultiply}, Warn: {multiplied}, NotApplicable: {noRetries, oneAtATime}}, onlyReported: true},
		{Name: "volume-breaker", Does: "answers all requests with 503, after 300 ms each, for six seconds", Source: "Nygard, Release It!, Circuit Breaker",
			plan: plan{calls: 120, every: 50 * time.Millisecond}, limit: 30 * time.Second, script: []answer{{status: 503, delay: 300 * time.Millisecond}},
			judge: sheds, rules: rules{Pass: {breaks}, NotApplicable: {noBreaker, tooFewCalls}}, maybeBusy: mayHideABreaker, onlyReported: true},
	}
}

const (
	fewMore        outcome = "makes at most 1.3 attempts for each call"
	manyMore       outcome = "makes more than 1.3 attempts for each call"
	atMostTwice    outcome = "makes at most twice as many attempts as calls"
	moreThanTwice  outcome = "makes more than twice as many attempts as calls"
	didNotMultiply outcome = "makes at most three attempts at the last service for each call"
	multiplied     outcome = "makes more than three attempts at the last service for each call"
	oneAtATime     outcome = "makes no call while another waits"
	breaks         outcome = "sends at most seven requests for ten calls"
	noBreaker      outcome = "sends more and so shows no circuit breaker"
)

func (s *Seen) finishedCalls() (ended, ok int) {
	for _, f := range s.Finished {
		if f.Ended == "" {
			ended++
		}
		if f.OK {
			ok++
		}
	}
	return ended, ok
}

func volume(s *Seen) finding {
	n := len(s.Finished)
	ratio := float64(len(s.Attempts)) / float64(n)
	return did(either(ratio > 1.3, manyMore, fewMore), "%.2f attempts a call, of %d calls", ratio, n)
}

// brownOut is the judge of a service of which a part fails.
func brownOut(s *Seen) finding {
	_, ok := s.finishedCalls()
	n := float64(len(s.Finished))
	ratio := float64(len(s.Attempts)) / n
	return did(either(ratio > 2, moreThanTwice, atMostTwice), "%.2f attempts a call; %.0f %% of the calls succeeded", ratio, float64(ok)/n*100)
}

func layered(s *Seen) finding {
	ended, _ := s.finishedCalls()
	if ended < len(s.Finished) && len(s.Attempts) < len(s.Finished) {
		return did(oneAtATime, "the client does not make a call while another waits")
	}
	ratio := float64(len(s.Attempts)) / float64(len(s.Finished))
	return did(either(ratio > 3, multiplied, didNotMultiply), "%.1f attempts at the last service for each call", ratio)
}

// count returns how many attempts, retries alone if so asked, arrived in a time.
func (s *Seen) count(from, to time.Duration, retries bool) int {
	n := 0
	for _, a := range s.Attempts {
		if a.Arrived >= from && a.Arrived < to && (!retries || a.Number > 1) {
			n++
		}
	}
	return n
}

// sheds is the judge of a breaker: while all fails, fewer requests come than calls are made.
func sheds(s *Seen) finding {
	calls, n := shed(s)
	if calls < 5 {
		return did(tooFewCalls, "the client could not make the calls: %d in two seconds", calls)
	}
	if float64(n) > 0.7*float64(calls) {
		return did(noBreaker, "%d requests for %d calls after four seconds of nothing but failures: nothing shows a circuit breaker", n, calls)
	}
	return did(breaks, "%d requests for %d calls after four seconds of nothing but failures", n, calls)
}

// shed returns how many calls and how many requests there were in the last two of six seconds.
func shed(s *Seen) (calls, requests int) {
	from, to := 4*time.Second, 6*time.Second
	for _, f := range s.Finished {
		if f.Start >= from && f.Start < to {
			calls++
		}
	}
	return calls, s.count(from, to, false)
}

// mayHideABreaker reports whether a busy machine can be why the requests do not fit the calls:
// some have not arrived, or were not made.
func mayHideABreaker(s *Seen) bool {
	calls, _ := shed(s)
	return s.Late > s.Case.plan.every || calls < int(2*time.Second/s.Case.plan.every)*3/4
}
