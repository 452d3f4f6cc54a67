package torture

import (
	"slices"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

func hedgeCases() []Case {
	const source = "Dean and Barroso, The Tail at Scale; gRFC A6 (hedging)"
	slow := answer{status: 200, delay: 3 * time.Second, only: hedgedCall + 1}
	const usual = 20 * time.Millisecond // longer than a busy machine adds
	p := plan{calls: hedgedCall + 1}
	return []Case{
		{Name: "hedge-get", Does: "answers a hundred and twenty GETs after 20 ms each; then the first attempt of a GET after three seconds, and others at once", Source: source,
			plan: p, usualDelay: usual, script: []answer{slow, good},
			judge: hedge, rules: rules{Pass: {hedgedWell}, Fail: {leftOpen, callFailed}, NotApplicable: {noHedge}}, maybeBusy: mayHideAHedge, judgedWhenBusy: true, retriedLonger: true},
		{Name: "hedge-post", Does: "the same with POST", Source: source,
			method: "POST", body: 100, plan: p, usualDelay: usual, script: []answer{slow, good},
			judge: hedgedPost, rules: rules{Pass: {sentOnce}, Fail: {hedgedPOST}, NotApplicable: {noHedge}}, maybeBusy: mayHideAHedge, judgedWhenBusy: true, retriedLonger: true},
		{Name: "hedge-slow", Does: "takes fifty calls a second, and from the third second on answers all attempts after two seconds", Source: source,
			plan: plan{calls: 220, every: 20 * time.Millisecond}, usualDelay: usual, script: []answer{{status: 200, delay: 2 * time.Second, from: 2500 * time.Millisecond, until: time.Minute}},
			judge: hedgedSlow, rules: rules{Pass: {didNotDouble}, Warn: {doubled}, NotApplicable: {noHedge, tooFewCalls}}},
	}
}

const (
	hedgedWell   outcome = "sends a second one beside it and cancels the one that lost"
	noHedge      outcome = "does not hedge"
	hedgedPOST   outcome = "sends a second POST beside the first"
	didNotDouble outcome = "makes at most 1.5 requests for each call"
	doubled      outcome = "makes more than 1.5 requests for each call"
)

// hedgedCall is the number of the call that is slow. Those before it show the client what is
// usual.
const hedgedCall = 120

// hedged reports whether a second attempt came beside the first.
func hedged(s *Seen) bool {
	list := s.of(hedgedCall)
	return len(list) > 1 && (list[0].Answered == 0 || list[1].Arrived < list[0].Answered) &&
		(list[0].Gone == 0 || list[1].Arrived < list[0].Gone)
}

// mayHideAHedge reports whether a busy machine can be why no second attempt came beside the slow one: the
// client waits for as long as its calls usually take at most, and they took long. The slow answer of the
// next try takes twice as long.
func mayHideAHedge(s *Seen) bool {
	if hedged(s) {
		return false
	}
	var usual []time.Duration
	for _, f := range s.Finished {
		if f.Call < hedgedCall {
			usual = append(usual, f.End-f.Start)
		}
	}
	if len(usual) == 0 {
		return false
	}
	slices.Sort(usual)
	return usual[len(usual)*95/100] > s.Case.script[0].delay/20
}

func hedge(s *Seen) finding {
	list := s.of(hedgedCall)
	switch {
	case !hedged(s):
		return did(noHedge, "no second attempt beside the slow one")
	case !s.Finished[len(s.Finished)-1].OK:
		return did(callFailed, "the call failed: %s", words.Short(s.Finished[len(s.Finished)-1].Text))
	case list[0].Gone == 0:
		return did(leftOpen, "the attempt that lost was left running")
	}
	return did(hedgedWell, "a second attempt after %s; the first was cancelled %s later", words.Rounded(list[1].Arrived-list[0].Arrived), words.Rounded(list[0].Gone-list[1].Arrived))
}

func hedgedPost(s *Seen) finding {
	switch {
	case hedged(s):
		return did(hedgedPOST, "a second POST beside the first, without a key")
	case !s.hedges:
		return did(noHedge, "the client does not hedge")
	}
	return did(sentOnce, "one attempt")
}

// hedgedSlow is the judge of a server that has become slow. Only the calls since then count: how many they
// are depends on the machine.
func hedgedSlow(s *Seen) finding {
	if !s.hedges {
		return did(noHedge, "the client does not hedge")
	}
	slow := map[int]int{} // attempts of each call
	for _, a := range s.Attempts {
		if _, ok := slow[a.Call]; ok || a.Number == 1 && a.Arrived >= s.Case.script[0].from {
			slow[a.Call]++
		}
	}
	if len(slow) < fewest {
		return did(tooFewCalls, "%s arrived while all were slow: too few to judge", words.Plural(len(slow), "call"))
	}
	requests := 0
	for _, n := range slow {
		requests += n
	}
	ratio := float64(requests) / float64(len(slow))
	return did(either(ratio > 1.5, doubled, didNotDouble), "%.2f requests a call where all are slow", ratio)
}
