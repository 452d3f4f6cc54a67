package breaker

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
)

func TestValidateNamesEveryMistake(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		cfg  Config
		want string // fields
	}{
		{Config{}, ""},
		{Config{Off: true, MetricsOnly: true}, ""},
		{Config{Consecutive: -1, ConsecutiveFor: -1}, ""},
		{Config{Consecutive: math.MinInt, ConsecutiveFor: math.MinInt64}, ""},
		{Config{Window: time.Millisecond, FailureRate: 1e-300, MinCalls: 1, Consecutive: 1, ConsecutiveFor: 1, SlowRate: 1, SlowCall: 1,
			OpenFor: 1, OpenMax: 1, OpenJitter: -1, Probes: 1000, ProbeTimeout: 1}, ""},
		{Config{Window: math.MaxInt64, FailureRate: 1, MinCalls: math.MaxInt, Consecutive: math.MaxInt, ConsecutiveFor: math.MaxInt64, SlowCall: math.MaxInt64,
			OpenFor: math.MaxInt64, OpenMax: math.MaxInt64, OpenJitter: 10, ProbeTimeout: math.MaxInt64}, ""},
		{Config{OpenFor: time.Hour}, ""},
		{Config{OpenMax: time.Second}, ""},
		{Config{OpenFor: 2, OpenMax: 1}, "OpenMax"},
		{Config{SlowRate: 0.5}, "SlowCall"},
		{Config{FailureRate: 50}, "FailureRate"},
		{Config{FailureRate: -1}, "FailureRate"},
		{Config{FailureRate: 1.01, SlowRate: 1.01, SlowCall: 1}, "FailureRate SlowRate"},
		{Config{Window: -1, FailureRate: 1.01, MinCalls: -1, SlowRate: -0.1, SlowCall: -1,
			OpenFor: -1, OpenMax: -1, OpenJitter: 11, Probes: -1, ProbeTimeout: -1},
			"FailureRate SlowRate SlowCall MinCalls Window OpenFor OpenMax OpenJitter Probes ProbeTimeout"},
		{Config{Window: 1, FailureRate: nan, SlowRate: nan, OpenJitter: nan, Probes: 1001}, "FailureRate SlowRate Window OpenJitter Probes"},
		{Config{FailureRate: inf, SlowRate: inf, SlowCall: 1, OpenJitter: inf}, "FailureRate SlowRate OpenJitter"},
	} {
		err := c.cfg.Validate()
		check.Equal(t, strings.Join(problem.Fields(err), " "), c.want, "%+v: problems with", c.cfg)
		b, newErr := New(c.cfg)
		if (b == nil) != (err != nil) || (newErr == nil) != (err == nil) {
			t.Errorf("%+v: New gives %v, %v", c.cfg, b, newErr)
		}
	}
}

func TestCanStartLate(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want bool
	}{
		{Config{}, true},
		{Config{Consecutive: -1, MetricsOnly: true, OpenFor: 1, Window: time.Minute, MinCalls: 7}, true},
		{Config{FailureRate: 0.5}, false},
		{Config{SlowRate: 0.5, SlowCall: 1}, false},
		{Config{Off: true, FailureRate: 0.5}, true},
	} {
		check.Equal(t, c.cfg.CanStartLate(), c.want, "%+v: CanStartLate", c.cfg)
		b, untouched := must.Have(New(c.cfg)), must.Have(New(c.cfg))
		untouched.rules = b.rules
		run(b, time.Hour, 10, Success)
		run(b, time.Hour, 10, Neutral)
		check.Equal(t, *b == *untouched, c.want, "%+v: after successes as good as new", c.cfg)
	}
}

func TestTokenOfNothing(t *testing.T) {
	b := must.Have(New(rated(first(Config{MinCalls: 1}))))
	for range 100 {
		b.Done(0, Ticket{}, Failure, nil)
	}
	if s := b.State(0); s != Closed || (Ticket{}).Probe() {
		t.Errorf("zero tokens: %v", s)
	}
	var off Breaker
	off.Done(0, LateTicket(0), Failure, nil)
	check.Equal(t, off.State(0), Closed, "the token of a call that nobody asked for, at a breaker that is off")
}

// With any configuration and any reading of the clock, nothing panics, and an
// open breaker can be forced closed.
func FuzzNothingPanics(f *testing.F) {
	f.Add(int64(0), 0.0, 0, 0, int64(0), 0.0, int64(0), int64(0), int64(0), 0.0, 0, int64(0), uint8(0), []byte{1, 2, 3})
	f.Add(int64(math.MaxInt64), 1.0, 1, 1, int64(-1), 1.0, int64(1), int64(math.MaxInt64), int64(math.MaxInt64), 10.0, 1000, int64(math.MaxInt64), uint8(2), []byte{0, 255, 7, 8, 9})
	f.Fuzz(func(t *testing.T, win int64, rate float64, minCalls, row int, rowFor int64, slowRate float64, slow, openFor, openMax int64, jitter float64, probes int, timeout int64, flags uint8, ops []byte) {
		c := Config{Off: flags&1 != 0, Window: time.Duration(win), FailureRate: rate, MinCalls: minCalls, Consecutive: row, ConsecutiveFor: time.Duration(rowFor),
			SlowRate: slowRate, SlowCall: time.Duration(slow), OpenFor: time.Duration(openFor), OpenMax: time.Duration(openMax),
			OpenJitter: jitter, Probes: probes, ProbeTimeout: time.Duration(timeout), MetricsOnly: flags&2 != 0}
		b, err := New(c, func(c Change) { _ = c.String() })
		if err != nil {
			if err.Error() == "" {
				t.Error("an error that says nothing")
			}
			return
		}
		var toks []Ticket
		now := time.Duration(0)
		for _, op := range ops {
			switch op % 16 {
			case 0:
				now = math.MaxInt64
			case 1:
				now = math.MinInt64
			case 2:
				now += c.Window
			case 3:
				now -= time.Duration(op) << (op % 60)
			case 4, 5:
				now += time.Duration(op) << (op % 60)
			case 6:
				b.ForceOpen(now)
			case 7:
				b.Auto(now)
			case 8, 9, 10, 11:
				if tok, ok := b.Start(now); ok {
					toks = append(toks, tok)
				}
			default:
				if len(toks) > 0 {
					b.Done(now, toks[0], Evidence(op%4), func() uint64 { return uint64(op) << 56 })
					toks = toks[1:]
				}
			}
			b.State(now)
			b.RetryAt(now)
			b.Counts(now)
		}
		b.ForceClosed(now)
		check.Equal(t, b.State(now), Closed, "forced closed")
	})
}
