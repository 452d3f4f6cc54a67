package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/hedge"
)

// What all backends of the tail have in common. A request takes tailMedian, plus or minus
// tailSpread of it; a slow one tailFactor times as long. While the gate of a backend is shut
// all are slow.
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

// tailQueue is so short that every request in it is served before its timeout, by default.
// So a request is either refused at once or a slow success: the two that a client must
// distinguish.
func (s setting) tailQueue() int { return s.workers() }

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

// newNaiveHedger is the hedger that everybody has written: a timer, a second request, and a
// channel of which one answer is read. It asks neither whether everything is slow nor
// whether that answer is a success.
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

// hedgePolicy is lull's in the tail: the zero policy but for the timeout, which all clients
// have, and the hedge.
func (s setting) hedgePolicy() lull.Policy {
	return lull.Policy{AttemptTimeout: s.Timeout, Hedge: hedge.Config{Attempts: s.Attempts}}
}

// hedgePolicyText returns hedgePolicy as one would write it in Go.
func (s setting) hedgePolicyText() string {
	return fmt.Sprintf("lull.Policy{AttemptTimeout: %v, Hedge: hedge.Config{Attempts: %d}}", s.Timeout, s.Attempts)
}
