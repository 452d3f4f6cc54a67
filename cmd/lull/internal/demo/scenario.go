package demo

import (
	"io"
	"math/rand/v2"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

// A scenario is the part of the demo that differs between storm and tail. In storm backends
// go down and calls are retried. In tail some requests are slow and calls are hedged. The
// rest of this package is for both.
type scenario interface {
	clients() []client // in the order in which they are shown
	defaults() defaults
	words() words

	// The backends: workers returns how many each has, service the time of a request.
	workers(setting) int
	service(s setting, random *rand.Rand, shut bool) time.Duration

	// The live picture: the heading, so many seconds before the outage or after it, the legend of the
	// bars, and for each client a line and two bars for a stretch of time.
	heading(s setting, p phase, seconds float64) string
	legend(snapshot) [2]string
	status(snapshot, laneSnapshot) string
	bars(s snapshot, l laneSnapshot, from, to time.Duration) (colour string, bars [2]string)

	// The live lines: a heading, and what happened in a second.
	plainHead(snapshot) string
	plainLine(s snapshot, from, to time.Duration) string

	// The result: measure adds the figures of a lane that has stopped, describe the
	// lines of the setting; then how the figures are printed.
	measure(r *result, l *lane)
	describe(setting) [][2]string
	table(io.Writer, result)
	findings(result) []string
	json(result) (setting object, clients any)
}

var (
	storm scenario = stormScenario{}
	tail  scenario = tailScenario{}
)

type words struct {
	outage      string        // on the axis of time
	note        string        // of the lines that are marked
	bars        [2]string     // labels
	nameWidth   int           // of the clients, where they are described
	unfinished  string        // what became of the calls that an interrupt ended
	late        time.Duration // how late calls may begin before figures are in doubt
	affected    string        // which figures those are
	requests    string        // what a client sends
	definitions string        // of the figures
}

// defaults are those that differ between the scenarios.
type defaults struct {
	duration, capacity, attempts, timeout cli.Text
	outage                                time.Duration
	latestOutageAt                        time.Duration // where the outage begins, sooner in a short run
	outageAfter, outagePart               time.Duration // then after, and for, this part of the duration
}
