package demo

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

// What every backend and every naive client of the storm has in common.
const (
	workers   = 4                      // of each backend; a request takes workers/capacity on average
	naiveBase = 100 * time.Millisecond // the first wait of naive clients, and lull's default base
)

// stormScenario: backends go down and come back, and calls are retried.
type stormScenario struct{}

func (stormScenario) clients() []client { return stormClients }

// usualAttempts is what a loop written by hand makes. Unless the flag says otherwise, lull makes as
// many as its zero policy does.
const usualAttempts = 3

func (stormScenario) defaults() defaults {
	return defaults{"25s", "100", cli.Text(strconv.Itoa(usualAttempts)), "500ms", 5 * time.Second, 4 * time.Second, 4, 5}
}

func (stormScenario) words() words {
	return words{
		outage: "down", note: "the backends were down", bars: [2]string{"load", "ok"}, nameWidth: 15,
		unfinished: "not ended and count as calls, but neither in the success rate nor in the times.",
		late:       50 * time.Millisecond, affected: "the figures", requests: "attempts", definitions: stormDefinitions,
	}
}

func (stormScenario) workers(setting) int { return workers }

func (stormScenario) service(s setting, random *rand.Rand, _ bool) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(s.service()))
}

// service returns the mean time that a worker needs for a request.
func (s setting) service() time.Duration {
	return time.Duration(float64(workers) / float64(s.Capacity) * float64(time.Second))
}

var stormClients = []client{
	{"no retry", func(setting) string { return "one attempt" }, once},
	{"immediate", func(s setting) string { return fmt.Sprintf("%d attempts, no wait between them", s.Attempts) },
		retries(func(int) time.Duration { return 0 })},
	{"fixed interval", func(s setting) string { return fmt.Sprintf("%d attempts, %v between them", s.Attempts, naiveBase) },
		retries(func(int) time.Duration { return naiveBase })},
	{"exponential", func(s setting) string {
		return fmt.Sprintf("%d attempts, waits of %v, doubling, no jitter", s.Attempts, naiveBase)
	}, retries(doubling)},
	{"full jitter", func(s setting) string {
		return fmt.Sprintf("%d attempts, random waits of up to %v, doubling, no budget", s.Attempts, naiveBase)
	}, retries(func(n int) time.Duration { return rand.N(doubling(n) + 1) })},
	{"lull", func(s setting) string {
		return fmt.Sprintf("lullhttp with lull's zero policy, the demo's attempt timeout:\n%s", s.policyText())
	}, newLull(setting.policy)},
}

// doubling returns the wait before the nth retry, counted from 1.
func doubling(n int) time.Duration { return naiveBase << (n - 1) }

// policy is lull's in the storm: the zero policy, but for what the demo sets for every
// client.
func (s setting) policy() lull.Policy {
	p := lull.Policy{AttemptTimeout: s.Timeout}
	if s.Attempts != usualAttempts {
		p.Attempts = s.Attempts
	}
	return p
}

// policyText returns policy as one would write it in Go.
func (s setting) policyText() string {
	attempts := ""
	if n := s.policy().Attempts; n != 0 {
		attempts = fmt.Sprintf(", Attempts: %d", n)
	}
	return fmt.Sprintf("lull.Policy{AttemptTimeout: %v%s}", s.Timeout, attempts)
}
