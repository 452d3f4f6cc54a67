package demo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/hedge"
)

// What all backends of the tail have in common. A request takes tailMedian, plus or minus tailSpread of it; a slow one
// tailFactor times as long. While the gate of a backend is shut all are slow.
const (
	tailMedian = 10 * time.Millisecond
	tailSpread = 0.3
	tailFactor = 50
	slowMedian = tailFactor * tailMedian

	// The longest that a request takes without waiting, and the least that a slow one takes.
	slowest      = slowMedian * (10 + 10*tailSpread) / 10
	quickestSlow = slowMedian * (10 - 10*tailSpread) / 10
)

// tailScenario: some requests are slow, for a time all, and calls are hedged.
type tailScenario struct{}

func (tailScenario) clients() []client { return tailClients }

func (tailScenario) defaults() defaults {
	return defaults{"28s", "280", "2", "2s", 6 * time.Second, 9 * time.Second, 3, 4}
}

func (tailScenario) words() words {
	return words{
		outage: "slow", note: "everything was slow", bars: [2]string{"p99", "extra"}, nameWidth: 11,
		unfinished: "not ended, and are not counted.",
		late:       tailMedian, affected: "times", requests: "requests", definitions: tailDefinitions,
	}
}

// workers are as many as serve Capacity requests a second while all are slow: that is when
// capacity counts. At other times they serve 25 times as many.
func (tailScenario) workers(s setting) int {
	return max(1, int(float64(s.Capacity)*slowMedian.Seconds()+0.5))
}

func (tailScenario) service(s setting, random *rand.Rand, allSlow bool) time.Duration {
	spread := 1 + tailSpread*(2*random.Float64()-1)
	if random.Float64() < s.Tail || allSlow {
		return time.Duration(spread * float64(slowMedian))
	}
	return time.Duration(spread * float64(tailMedian))
}

var tailClients = []client{
	{"no hedging", func(setting) string { return "one request" }, once},
	{"naive", func(s setting) string {
		return fmt.Sprintf("a second request whenever there is no answer after %v;\nthe first answer counts, whatever it is", s.HedgeDelay)
	}, newNaiveHedger},
	{"lull", func(s setting) string {
		policy := s.hedgePolicyText()
		if len(policy) > 66 { // what fits beside the names
			policy = strings.Replace(policy, ", Hedge", ",\n  Hedge", 1)
		}
		return "lullhttp with a hedge, sent at the p95 that it has learned:\n" + policy
	}, newLull(setting.hedgePolicy)},
}

// newNaiveHedger is the hedger that everybody has written: it asks neither whether all is slow nor whether the answer is a success.
func newNaiveHedger(s setting, base http.RoundTripper, url string) (caller, error) {
	httpClient := &http.Client{Transport: base}
	return func(ctx context.Context) bool {
		ctx, cancel := context.WithCancel(ctx) // ends the request that comes second
		defer cancel()
		answers := make(chan bool, 2)
		request := func() { answers <- attempt(ctx, httpClient, url, s.Timeout) }
		go request()
		timer := time.NewTimer(s.HedgeDelay)
		defer timer.Stop()
		select {
		case ok := <-answers:
			return ok
		case <-timer.C:
			go request()
		}
		return <-answers
	}, nil
}

// hedgePolicy is lull's in the tail: the zero policy but for the timeout, which all clients have, and the hedge.
func (s setting) hedgePolicy() lull.Policy {
	return lull.Policy{AttemptTimeout: s.Timeout, Hedge: hedge.Config{Attempts: s.Attempts}}
}

func (s setting) hedgePolicyText() string {
	return fmt.Sprintf("lull.Policy{AttemptTimeout: %v, Hedge: hedge.Config{Attempts: %d}}", s.Timeout, s.Attempts)
}

const slowP99 = 10 * tailMedian

func (tailScenario) heading(s setting, p phase, seconds float64) string {
	slow := fmt.Sprintf("%v %% of the requests are slow", round(100*s.Tail, 2))
	switch p {
	case before:
		return fmt.Sprintf("%s; all will be in %.1f s", slow, seconds)
	case during:
		return fmt.Sprintf("EVERYTHING TAKES %d TIMES AS LONG ", tailFactor)
	case after:
		return fmt.Sprintf("everything was slow until %.1f s ago", seconds)
	}
	return slow
}

func (tailScenario) legend(s snapshot) [2]string {
	return [2]string{
		fmt.Sprintf("p99:   of the last 3 s, log scale %v to %v; yellow: > %v, red: calls fail",
			tailMedian/2, max(s.setting.Timeout, slowMedian), slowP99),
		fmt.Sprintf("extra: requests beyond the first of each call; %c is one for every call", term.Blocks.Highest()),
	}
}

func (tailScenario) status(s snapshot, l laneSnapshot) string {
	r, known := l.recentBy(s.now)
	from := s.now - time.Second
	text := fmt.Sprintf("%-11s p50 %5s  p99 %5s ms  extra %+4.0f%%  failed %4d",
		l.name, recentCell(r.p50, known), recentCell(r.p99, known), 100*extraLoad(l.counts, from, s.now), total(l.counts[bad]))
	if n := sum(l.counts[held], from, s.now); n > 0 {
		text += fmt.Sprintf("  held back %d/s", n)
	}
	return text
}

func (tailScenario) bars(s snapshot, l laneSnapshot, from, to time.Duration) (colour string, bars [2]string) {
	colour, p99 := term.Reset, " " // nothing known yet
	if r, known := l.recentBy(to); known {
		good, failed := rateIn(l.counts[succeeded], from, to), rateIn(l.counts[bad], from, to)
		switch {
		case ratio(failed, good+failed) > muchFails:
			colour = term.Red
		case r.p99 > slowP99:
			colour = term.Yellow
		default:
			colour = term.Green
		}
		p99 = term.Blocks.Of(logShare(r.p99, tailMedian/2, max(s.setting.Timeout, slowMedian)))
	}
	return colour, [2]string{p99, term.Blocks.Of(ratio(rateIn(l.counts[extra], from, to), rateIn(l.counts[begun], from, to)))}
}

func logShare(d, least, most time.Duration) float64 {
	return math.Log(float64(max(d, least))/float64(least)) / math.Log(float64(most)/float64(least))
}

func (tailScenario) plainHead(s snapshot) string {
	var b strings.Builder
	b.WriteString("Each second. p50, p99: ms within which half of the calls succeeded, and 99 % of\n" +
		"those of the last 3 s; never: fewer did. extra: requests beyond one for a call.\n" +
		"fail: calls that failed.\n")
	fmt.Fprintf(&b, "%7s", "")
	for _, l := range s.lanes {
		fmt.Fprintf(&b, "  %21s", l.name)
	}
	fmt.Fprintf(&b, "\n%7s", "")
	for range s.lanes {
		b.WriteString("    p50   p99 extra fail")
	}
	return b.String() + "\n"
}

func (tailScenario) plainLine(s snapshot, from, to time.Duration) (line string) {
	for _, l := range s.lanes {
		r, known := l.recentBy(to)
		line += fmt.Sprintf("  %5s %5s %+4.0f%% %4d", recentCell(r.p50, known), recentCell(r.p99, known),
			100*extraLoad(l.counts, from, to), sum(l.counts[bad], from, to))
	}
	return line
}

func recentCell(d time.Duration, known bool) string {
	if !known {
		return "-"
	}
	return cell(d)
}
