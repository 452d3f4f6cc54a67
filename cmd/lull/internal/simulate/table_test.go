package simulate

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

const ms = time.Millisecond

// fixedScenario uses every feature that is described in words.
func fixedScenario() sim.Scenario {
	const s = time.Second
	return sim.Scenario{
		Name: "fixed", Title: "A scenario of everything", Horizon: 100 * s, Step: 2 * s, Warmup: 5 * s,
		Fleets: []sim.Fleet{
			{Name: "shops", Calls: "pay", Processes: 1200, Arrivals: sim.Arrivals{Rate: 250.5, Ramp: []sim.RampPoint{{At: 0, Factor: 1}, {At: 80 * s, Factor: 1}, {At: 90 * s, Factor: 2}, {At: 100 * s, Factor: 2}}},
				AttemptTimeout: s, Deadline: 3 * s, NotIdempotent: true, Reload: sim.Reload{Share: 0.5, After: sim.Distribution{Mean: 2 * s}, Times: 3}},
			{Name: "bystander", Calls: "pay", Keyed: true, NotIdempotent: true, Arrivals: sim.Arrivals{Kind: sim.Closed, Each: 4, Think: sim.Distribution{Kind: sim.Uniform, Min: s, Max: 2 * s}}, Policy: "none",
				Network: sim.Network{Latency: sim.Distribution{Kind: sim.LogNormal, Mean: 5 * ms, Sigma: 0.3}, Loss: 0.01}},
			{Name: "herd", Calls: "pay", Processes: 10, Arrivals: sim.Arrivals{Kind: sim.AtOnce, At: 5 * s, Within: s}},
			{Name: "cron", Calls: "pay", Processes: 10, Arrivals: sim.Arrivals{Kind: sim.Periodic, Every: 60 * s}},
			{Name: "probe", Calls: "bank", Arrivals: sim.Arrivals{Kind: sim.Constant, Rate: 1}},
		},
		Services: []sim.Service{
			{Name: "pay", Hosts: 3, Workers: 10, Queue: sim.Queue{Limit: 1000, Order: sim.LIFO, DropExpired: true, DontRetry: true},
				Time: sim.Distribution{Kind: sim.Bimodal, Mean: 10 * ms, Slow: 0.01, SlowMean: s}, Congestion: 2 * ms, Deduplicates: true, CancelWork: true,
				Calls:  []sim.Hop{{Service: "bank", AttemptTimeout: s, Deadline: true, Policy: "lull"}},
				Faults: []sim.Fault{{Kind: sim.BrownOut, At: 30 * s, For: 10 * s, Hosts: 1}, {Kind: sim.Crash, At: 60 * s, For: s, Warmup: 5 * s, Cold: 4}}},
			{Name: "bank", Time: sim.Distribution{Kind: sim.Normal, Mean: 10 * ms, Deviation: ms}, Errors: 0.001, Rate: sim.Rate{PerSecond: 100, RetryAfter: s}, Contention: true,
				Faults: []sim.Fault{{Kind: sim.Errors, At: 1500 * ms, For: 200 * ms, Every: 50 * s, RetryAfter: 2 * s}, {Kind: sim.SlowDown, At: s, For: s, Share: 0.25}, {At: 3 * s, For: s}}},
		},
	}
}

// flown returns what comes of the tiny scenario with three policies.
func flown(t *testing.T, seeds cli.Text) outcome {
	t.Helper()
	s := must.Have(Command{Scenario: tiny, Policy: cli.Texts{"none,naive-3,lull"}, Seed: "1", Seeds: seeds}.simulation())
	o := must.Have(s.run(t.Context(), term.NewProgress(io.Discard, func(string) string { return "" }, true)))
	return o
}

func comparison(t *testing.T, o outcome, bars term.Bars) string {
	t.Helper()
	var out bytes.Buffer
	must.Succeed(printComparison(&out, o, bars))
	clitest.Width(t, out.String(), tableWidth)
	return out.String()
}

func TestScenarioInWords(t *testing.T) {
	golden.File(t, "testdata/fixed.txt", scenarioText(fixedScenario()))
}

func TestComparisonInASCII(t *testing.T) {
	ascii := comparison(t, flown(t, "1"), term.ASCII)
	golden.File(t, "testdata/tiny-ascii.txt", ascii)
	for _, block := range string(term.Blocks) + "▔·" {
		if strings.ContainsRune(ascii, block) {
			t.Errorf("%c is not ASCII", block)
		}
	}
}

func TestComparisonOfAnInterruptedRun(t *testing.T) {
	o := flown(t, "3")
	o.interrupted = true
	all := o.results[0]
	cut := &all[1].Results[1]
	cut.Interrupted, cut.End = true, 50*time.Second
	all[1].Results = all[1].Results[:2]
	first := &all[0].Results[0]
	first.Interrupted, first.Series.Goodput, first.Series.First, first.Series.Retries = true, first.Series.Goodput[:20], first.Series.First[:20], first.Series.Retries[:20]
	o.results[0] = all[:2] // the third had not begun
	golden.File(t, "testdata/tiny-interrupted.txt", comparison(t, o, term.Blocks))
}

func TestNothingIsKnownOfWhatHadNotBegun(t *testing.T) {
	o := flown(t, "1")
	o.interrupted, o.results[0] = true, nil
	if text := comparison(t, o, term.Blocks); !strings.Contains(text, "0 of 3 runs were complete") {
		t.Errorf("printed\n%s", text)
	}
}

func TestColumns(t *testing.T) {
	for want, s := range map[string]sim.Scenario{
		"handled, per msg, normal, p99, letters, done, up after":                    {Topics: []sim.Topic{{}}},
		"success, per call, 10 s, normal, held, p99, wasted, refused, lost, memory": {Fleets: []sim.Fleet{{Link: sim.Link{On: true}}}},
		"success, per call, 10 s, per s, held, p99, wasted, refused, done":          {Fleets: []sim.Fleet{{Arrivals: sim.Arrivals{Kind: sim.AtOnce}}}},
	} {
		check.Equal(t, strings.Join(choice.Each(columnsFor(s, nil), func(c column) string { return c.head }), ", "), want, "columns")
	}
}

func TestResampled(t *testing.T) {
	for bars := 1; bars <= 70; bars++ {
		for points := bars; points < 130; points++ {
			values := make([]float64, points)
			for i := range values {
				values[i] = 7
			}
			got := resampled(values, points, bars)
			if len(got) != bars || got[0] != 7 || got[bars-1] != 7 {
				t.Fatalf("%d points in %d bars: %v", points, bars, got)
			}
		}
	}
}

func TestFaultAxis(t *testing.T) {
	s := sim.Scenario{Horizon: 20 * time.Second, Services: []sim.Service{{Faults: []sim.Fault{{At: 5 * time.Second, For: 2 * time.Second}, {At: time.Second, For: 100 * ms, Every: 14 * time.Second}}}}}
	check.Equal(t, faultAxis(s, 20, time.Second, term.Blocks), "0▔···▔▔········▔···· 20 s", "faultAxis(s, 20, time.Second, term.Blocks)")
	s.Services[0].Faults = s.Services[0].Faults[:1]
	check.Equal(t, faultAxis(s, 20, time.Second, term.ASCII), "0....^^........ 20 s", "faultAxis(s, 20, time.Second, term.ASCII)")
}

func TestInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 1500: "1.5 µs", 51200: "51.2 µs", 12 * ms: "12 ms", 12345 * time.Microsecond: "12.3 ms", 999 * ms: "999 ms", time.Second: "1 s",
		12345 * ms: "12.3 s", 90 * time.Second: "90 s", 10 * time.Minute: "10 min", 125 * time.Minute: "125 min", 5 * time.Hour: "5 h", 9000 * time.Hour: "9000 h", -time.Second: "-1 s",
	} {
		check.Equal(t, inWords(d), want, "inWords(%d)", d)
	}
}

func TestNumbersInWords(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 999: "999", 1000: "1,000", 25e6: "25,000,000", -1234: "-1,234", 250.5: "250.5", 0.5: "0.5"} {
		check.Equal(t, grouped(v), want, "grouped(%v)", v)
	}
	for v, want := range map[float64]string{0: "0", 950: "950", 999.7: "1k", 12345: "12.3k", 4.1e6: "4.1M", 2e9: "2G"} {
		check.Equal(t, abbreviated(v), want, "abbreviated(%v)", v)
	}
	for v, want := range map[float64]string{0: "0%", 1: "100%", 0.5: "50.0%", 0.9999999: "99.99%", 0.9998: "99.98%", 0.00001: "0.01%", 0.0004: "0.04%"} {
		check.Equal(t, percentOf(v), want, "percentOf(%v)", v)
	}
}

// What a time to recover hides is said: that few calls were made, and that it was not the first.
func TestVerdictsHideNothing(t *testing.T) {
	summary := func(vs ...sim.Recovery) sim.Summary {
		m := sim.Summary{Contender: sim.Contender{Name: "ours"}}
		for _, v := range vs {
			m.Results = append(m.Results, sim.Result{Recovery: v})
			if v.Recovered {
				m.Recovered++
				m.Recovery.Mean = v.Time.Seconds()
			}
		}
		return m
	}
	well := sim.Recovery{Measured: true, Recovered: true, Time: 18 * time.Second, Within: 5 * time.Second}
	sparse, again := well, well
	sparse.Within = 40 * time.Second
	again.First, again.Relapses = 2*time.Second, 3
	twice := summary(well)
	twice.Results[0].Totals.Duplicates = 1234
	for _, c := range []struct {
		m    sim.Summary
		want string
	}{
		{summary(well), "18 s"},
		{summary(sparse), "18 ±40 s"},
		{summary(again), "18 s"},
		{summary(sim.Recovery{Few: true}), "few calls"},
		{summary(sim.Recovery{Measured: true, Within: 5 * time.Second}), "never"},
		{summary(sim.Recovery{}), "-"},
		{summary(well, sim.Recovery{Measured: true}), "1/2 18 s"},
	} {
		check.Equal(t, recoveryCell(c.m), c.want, "%+v", c.m.Results[0].Recovery)
	}
	for _, c := range []struct {
		m    sim.Summary
		want string
	}{
		{summary(again), "Back for a time, and worse again: ours (first after 2 s, 3 relapses)."},
		{summary(again, well), "Back for a time, and worse again: ours (first after 2 s, 3 relapses with 1 of 2 seeds)."},
		{summary(well), "Back to normal, the soonest first: ours (18 s)."},
		{twice, "Operations carried out more than once: ours (1,234)."},
	} {
		text := strings.Join(strings.Fields(strings.Join(findings(sim.Scenario{}, []sim.Summary{c.m}), "\n")), " ")
		if strings.Contains(text, "worse again") != strings.Contains(c.want, "worse again") || !strings.Contains(text, c.want) {
			t.Errorf("%q, want %q in it", text, c.want)
		}
	}
	var out strings.Builder
	writeTable(&out, columnsFor(sim.Scenario{}, []sim.Summary{twice}), []sim.Summary{twice})
	if !strings.Contains(out.String(), " twice\n") || !strings.Contains(out.String(), " 1,234\n") {
		t.Errorf("operations that were carried out twice are not in\n%s", out.String())
	}
}

// Several fleets have a line each, for every policy.
func TestFleetsInTheTable(t *testing.T) {
	s := sim.Scenario{
		Name: "two", Horizon: 30 * time.Second,
		Services: []sim.Service{{Name: "api", Workers: 10, Queue: sim.Queue{Limit: 100}, Time: sim.Distribution{Mean: 10 * ms}}},
		Fleets: []sim.Fleet{
			{Name: "ours", Calls: "api", Arrivals: sim.Arrivals{Rate: 20}, AttemptTimeout: time.Second},
			{Name: "theirs", Calls: "api", Arrivals: sim.Arrivals{Rate: 20}, AttemptTimeout: 5 * ms, Policy: "none"},
		},
	}
	all := must.Have(sim.Compare(t.Context(), s, []sim.Contender{{Name: "lull"}}, sim.CompareOptions{Seeds: 2}))
	var out strings.Builder
	writeFleets(&out, s, columnsFor(s, all), all)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"Of each fleet", "lull ours 100% ±0.0 1.00 ±0.00", "lull theirs 0% ±0.0 1.00 ±0.00"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	out.Reset()
	if writeFleets(&out, s, columnsFor(s, all), []sim.Summary{{Results: []sim.Result{{}}}}); out.Len() > 0 {
		t.Errorf("of one fleet:\n%s", out.String())
	}
}
