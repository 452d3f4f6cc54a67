package torture

import (
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

func recoveryCases() []Case {
	outage := answer{status: 503, from: time.Second, until: 3 * time.Second}
	p := plan{calls: 400, every: 20 * time.Millisecond}
	return []Case{
		{Name: "recovery-back", Does: "takes fifty calls a second, and answers with 503 from the first second to the third", Source: "Nygard, Release It!, Circuit Breaker: the half-open state",
			plan: p, limit: 30 * time.Second, script: []answer{outage},
			judge: back, rules: rules{Pass: {isBack}, Fail: {staysDown}, NotApplicable: {tooFewCalls}}, maybeBusy: mayHideThatItIsBack, onlyReported: true},
		{Name: "recovery-herd", Does: "takes fifty calls a second, and answers with 503 from the first second to the third", Source: "Bronson et al., Metastable Failures in Distributed Systems (HotOS 2021)",
			plan: p, limit: 30 * time.Second, script: []answer{outage},
			exempt: (*Seen).noRetry, judge: afterwards, rules: rules{Pass: {noCrowd}, Warn: {crowd}, NotApplicable: {noRetries}}, maybeBusy: mayOnlyBeBusy, judgedWhenBusy: true},
	}
}

const (
	isBack    outcome = "lets at least half of the calls succeed three seconds after the end"
	staysDown outcome = "fails more than half of the calls then"
	noCrowd   outcome = "makes at most twice as many retries as calls in any half second after the end"
	crowd     outcome = "makes more than twice as many retries as calls in half a second after the end"
)

// back is the judge of what follows on an outage: all calls succeed again, soon.
func back(s *Seen) finding {
	total, ok := 0, 0
	end := s.Case.script[0].until
	arrived := map[int]bool{}
	for _, a := range s.Attempts {
		arrived[a.Call] = true
	}
	for _, f := range s.Finished {
		if f.Ended != "" && !arrived[f.Call] {
			continue // it waits in the client, whose own limit is below fifty calls a second
		}
		if f.Start >= end+3*time.Second {
			total++
			if f.OK {
				ok++
			}
		}
	}
	switch {
	case total < 10:
		return did(tooFewCalls, "the client could not make the calls")
	case float64(ok) < 0.5*float64(total):
		return did(staysDown, "three seconds after the end of the outage %d of %d calls still fail", total-ok, total)
	case ok < total:
		return did(isBack, "three seconds after the end of the outage %d of %d calls succeed", ok, total)
	}
	return did(isBack, "three seconds after the end of the outage all %d calls succeed", total)
}

// mayHideThatItIsBack reports whether a busy machine can be why calls fail after the outage: it has no time for them,
// and its clients and their callers do not wait.
func mayHideThatItIsBack(s *Seen) bool { return s.Late > usualLateness && back(s).outcome == staysDown }

// afterwards is the judge of the retries that come when the outage is over. A client for which the machine
// has no time catches up later, with retries and with the first attempts of its calls alike: where those
// come in a crowd, too, that is no herd of retries.
func afterwards(s *Seen) finding {
	end := s.Case.script[0].until
	const window = 500 * time.Millisecond
	usual := int(window / s.Case.plan.every)
	worst, normal := 0, usual
	for at := end; at < end+5*time.Second; at += window / 5 {
		retries := s.count(at, at+window, true)
		calls := max(usual, s.count(at, at+window, false)-retries)
		if retries*normal > worst*calls {
			worst, normal = retries, calls
		}
	}
	if worst > 2*normal {
		return did(crowd, "%d retries within %s after the end of the outage; %d calls is normal", worst, words.Rounded(window), normal)
	}
	return did(noCrowd, "at most %d retries within %s after the end of the outage; %d calls is normal", worst, words.Rounded(window), normal)
}
