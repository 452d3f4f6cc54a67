package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// benchtime sets how long testing.Benchmark runs, for one test.
func benchtime(t *testing.T, value string) {
	t.Helper()
	f := flag.Lookup("test.benchtime")
	was := f.Value.String()
	must.Succeed(f.Value.Set(value))
	t.Cleanup(func() { _ = f.Value.Set(was) })
}

// fakes are two subjects in one group; no benchmark runs.
func fakes() []group {
	return []group{{name: "Group", about: "what it is about", reference: "lull", subjects: []subject{
		{name: "peer", does: retries | breaks},
		{name: "lull", does: retries | budgeted | breaks | limited | observed | timed},
	}, extras: []extra{{"peer", "lull"}}}}
}

// fake measures 100, 300, 200, ... ns for the peer and a tenth of that for lull,
// and half of both on two cores.
func fake() measurer {
	round := map[[2]any]int{}
	return func(_ group, s subject, cores int) (sample, error) {
		key := [2]any{s.name, cores}
		ns := []float64{100, 300, 200}[round[key]%3] / float64(cores)
		round[key]++
		if s.name == "lull" {
			return sample{Ns: ns / 10}, nil
		}
		return sample{Ns: ns, Bytes: 48, Allocs: 2}, nil
	}
}

func TestTable(t *testing.T) {
	results := must.Have(measureAll(fakes(), 3, fake(), io.Discard))
	var b strings.Builder
	must.Succeed(printTables(&b, results, 3))
	header, table, _ := strings.Cut(b.String(), "\n")
	if !strings.Contains(header, "median and minimum of 3 round(s)") {
		t.Errorf("header is %q", header)
	}
	const want = `
Group: what it is about
                                                       1 core               2 cores
subject  does                                           ns/op   min  ×lull    ns/op   min  ×lull  B/op  allocs/op
peer     retry+breaker                                    200   100   10.0      100  50.0   10.0    48          2
lull     retry+budget+breaker+limit+observed+timeouts    20.0  10.0   1.00     10.0   5.0   1.00     0          0

takes more  than  1 core    min  2 cores    min  B/op  allocs/op
peer        lull    +180  +90.0    +90.0  +45.0   +48         +2
`
	if table != want {
		t.Errorf("got:%s\nwant:%s", table, want)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{9, 1, 2, 4}, 3},
	} {
		var samples []sample
		for _, v := range c.values {
			samples = append(samples, sample{Ns: v})
		}
		if got := median(samples, func(s sample) float64 { return s.Ns }); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

// What one subject takes more than another is taken from the same round for both.
func TestSubtract(t *testing.T) {
	samples := []sample{{105, 900, 12}, {220, 900, 12}, {1990, 900, 12}}
	over := []sample{{230, 800, 9}, {100, 800, 9}, {1910, 800, 9}}
	if got, want := subtract(samples, over), (column{80, 5, 0, 100, 3}); got != want {
		t.Errorf("more: %+v, want %+v", got, want)
	}
	if got, want := subtract(over, samples), (column{-80, -5, 0, -100, -3}); got != want {
		t.Errorf("less: %+v, want %+v", got, want)
	}
	for ns, want := range map[float64]string{5: "+5.0", -5: "-5.0", 123.4: "+123", 0: "+0.0"} {
		if got := signed(ns); got != want {
			t.Errorf("%v is %s, want %s", ns, got, want)
		}
	}
}

// Rounds take every subject in turn, and not always in the same order.
func TestRoundsAreInterleaved(t *testing.T) {
	var order []string
	var progress strings.Builder
	_, err := measureAll(fakes(), 2, func(_ group, s subject, cores int) (sample, error) {
		if cores == 1 {
			order = append(order, s.name)
		}
		return sample{Ns: 1}, nil
	}, &progress)
	if want := []string{"peer", "lull", "lull", "peer"}; err != nil || !slices.Equal(order, want) {
		t.Errorf("order %v, error %v, want %v", order, err, want)
	}
	lines := strings.Split(strings.TrimSpace(progress.String()), "\n")
	if want := "8/8  round 2/2  Group/peer, 2 core(s): 1.0 ns/op"; len(lines) != 8 || lines[7] != want {
		t.Errorf("progress has %d lines, the last is %q, want %q", len(lines), lines[len(lines)-1], want)
	}
}

// A subject that fails is reported by name, on one core and on two.
func TestFailingSubject(t *testing.T) {
	benchtime(t, "10x")
	broken := errors.New("broken")
	g := group{name: "Group", subjects: []subject{{name: "peer", start: func(func(func())) binder {
		return op(func(context.Context) error { return broken }).bind
	}}}}
	for _, cores := range []int{1, 2} {
		if _, err := measure(g.subjects[0], cores); !errors.Is(err, broken) {
			t.Errorf("%d cores: error %v, want %v", cores, err, broken)
		}
	}
	here := func(_ group, s subject, cores int) (sample, error) { return measure(s, cores) }
	_, err := measureAll([]group{g}, 1, here, io.Discard)
	if err == nil || err.Error() != "Group/peer on 1 core(s): broken" {
		t.Errorf("error %v", err)
	}
}

func TestFlags(t *testing.T) {
	benchtime(t, "1x") // run sets it again; this puts it back
	for args, want := range map[string]string{
		"-rounds 0":                          "-rounds is 0: want 1 or more",
		"-time -1s":                          "-time is -1s: want a positive duration",
		"-group lasso":                       `-group "lasso" matches none of RetrySuccess, ComposedSuccess, ThreeFailures, HTTPGet, HTTPPut1K, HedgeSuccess, HedgeGet, Metrics, GRPCUnary, Adapters`,
		"-subject a/b":                       `-subject "a/b": there is none`,
		"-subject HTTPGet/net/http -cores 0": "-cores is 0: want 1 or more",
		"now":                                `unexpected argument "now": bench takes flags only, see -help`,
	} {
		if err := run(strings.Fields(args), io.Discard, io.Discard); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", args, err, want)
		}
	}
}
