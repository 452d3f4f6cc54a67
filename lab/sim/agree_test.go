package sim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// The TestAgree tests hold the simulator against what others have computed or
// proved: other people's simulators, closed formulas of queueing theory, and
// laws of conservation. go test -v -run Agree prints the comparisons.
//
// Chance has a part in all of them, so each states how much of it to expect. The
// seeds are fixed: a test that passes still passes when it runs again. A tolerance counted in
// standard errors is four of them, which chance exceeds once in 16,000
// comparisons; so a change of the simulator that only draws other numbers will
// hardly fail them, and one that introduces a bias will, down to what the table
// shows as the standard error.
const sigmas = 4

// bare is a policy with so many attempts and nothing else: no deadline, no
// timeout, no breaker, every failure repeated and every retry paid for.
func bare(attempts int, wait backoff.Schedule) lull.Policy {
	return lull.Policy{
		Attempts: attempts, Backoff: wait, Timeouts: lull.TimeoutsAlways,
		AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout,
		Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	}
}

// atOnce is no wait at all.
var atOnce = backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None}

// fly runs one contender with so many seeds.
func fly(t *testing.T, s sim.Scenario, c sim.Contender, seeds int) []sim.Result {
	t.Helper()
	return flyFrom(t, 1, s, c, seeds)
}

// flyFrom is fly with seeds from the given one on, for figures that are looked at
// together and should have no luck in common.
func flyFrom(t *testing.T, seed uint64, s sim.Scenario, c sim.Contender, seeds int) []sim.Result {
	t.Helper()
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	sums := must.Have(sim.Compare(t.Context(), s, []sim.Contender{c}, sim.CompareOptions{Seed: seed, Seeds: seeds, Named: []sim.Contender{neverPays}}))
	return sums[0].Results
}

// long is set in the lab.
var long bool

// some is how many seeds a test flies: n in the lab, else a few.
func some(n int) int {
	if long {
		return n
	}
	return min(n, 2)
}

// few is some where one seed shows enough.
func few(n int) int {
	if long {
		return n
	}
	return 1
}

// A sample is the mean of some figures, and how far it can be trusted.
type sample struct {
	n              int
	mean, deviates float64 // standard deviation of one figure
}

// stderr is the standard error of the mean.
func (s sample) stderr() float64 { return s.deviates / math.Sqrt(float64(s.n)) }

func (s sample) String() string { return fmt.Sprintf("%.4g ± %.2g", s.mean, s.stderr()) }

// over samples one figure of each result.
func over(rs []sim.Result, figure func(*sim.Result) float64) sample {
	s := sample{n: len(rs)}
	for i := range rs {
		s.mean += figure(&rs[i]) / float64(len(rs))
	}
	for i := range rs {
		d := figure(&rs[i]) - s.mean
		s.deviates += d * d
	}
	if s.n > 1 {
		s.deviates = math.Sqrt(s.deviates / float64(s.n-1))
	}
	return s
}

// apart is how many standard errors lie between a sample and what is expected of
// it, which may itself be known with the given standard error only. The standard
// error of a few figures is an estimate, and often too small; what Student's t
// makes of that is taken back to the normal distribution, so that 4 means as
// little chance for five seeds as for a thousand (Wallace, "Bounds on normal
// approximations to Student's and the chi-square distributions", 1959).
func (s sample) apart(expected, stderr float64) float64 {
	off := s.mean - expected
	if off == 0 {
		return 0
	}
	t, v := off/math.Hypot(s.stderr(), stderr), float64(s.n-1)
	return math.Copysign((8*v+1)/(8*v+3)*math.Sqrt(v*math.Log1p(t*t/v)), off)
}

// A table is printed to the test's log.
type table struct {
	text strings.Builder
	w    *tabwriter.Writer
}

func newTable(head ...any) *table {
	t := &table{}
	t.text.WriteByte('\n')
	t.w = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	t.row(head...)
	return t
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		switch c := c.(type) {
		case float64:
			fmt.Fprintf(t.w, "%.4g", c)
		case time.Duration:
			fmt.Fprint(t.w, c.Round(time.Millisecond))
		default:
			fmt.Fprint(t.w, c)
		}
	}
	fmt.Fprintln(t.w)
}

func (t *table) log(to *testing.T) {
	to.Helper()
	t.w.Flush()
	to.Log(t.text.String())
}

func paidBy(b func() budget.Budget) []lull.Option { return []lull.Option{lull.WithBudget(b)} }

// idle is a budget that pays for nothing and learns nothing.
type idle struct{}

func (idle) Start(time.Duration)                           {}
func (idle) Failed(time.Duration)                          {}
func (idle) Release(time.Duration, budget.Receipt)         {}
func (idle) Done(time.Duration, bool, budget.Receipt, int) {}
func (idle) Balance(time.Duration) float64                 { return 0 }
func (idle) Withdraw(time.Duration, budget.Class, func() uint64) budget.Grant {
	return budget.Grant{}
}
