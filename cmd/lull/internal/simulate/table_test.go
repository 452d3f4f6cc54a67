package simulate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/golden"
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

// fixedSummaries are of three policies: one recovers, one does not, and one never
// succeeds.
func fixedSummaries(seeds int) []sim.Summary {
	series := func(good, attempts func(i int) float64) sim.Series {
		s := sim.Series{Step: 2 * time.Second}
		for i := range 50 {
			s.Calls, s.First = append(s.Calls, 250), append(s.First, 250)
			s.Goodput, s.Retries = append(s.Goodput, good(i)), append(s.Retries, attempts(i)-250)
		}
		return s
	}
	half := 0.0
	if seeds > 1 {
		half = 1
	}
	build := func(name string, recovered int, success, amplification, took float64, s sim.Series, duplicates int64) sim.Summary {
		m := sim.Summary{
			Contender: sim.Contender{Name: name, Title: "the policy called " + name, Policy: lull.Policy{}},
			Success:   sim.Estimate{Mean: success, Half: 0.012 * half}, Amplification: sim.Estimate{Mean: amplification, Half: 0.1 * half},
			PeakOverNormal: sim.Estimate{Mean: amplification * 1.5, Half: 0.3 * half}, Recovered: recovered,
			Wasted: sim.Estimate{Mean: 100 / (25000 * amplification), Half: 0.002 * half}, Refused: sim.Estimate{Mean: 3. / 25000, Half: 0.001 * half},
		}
		if recovered > 0 {
			m.Recovery = sim.Estimate{Mean: took, Half: 0.53 * half}
		}
		for i := range seeds {
			r := sim.Result{Contender: name, Seed: uint64(i + 1), End: 100 * time.Second, Series: s}
			r.Totals = sim.Totals{Calls: 25000, Succeeded: int64(25000 * success), Attempts: int64(25000 * amplification), Wasted: 100, Refused: 3, Duplicates: duplicates}
			r.Recovery = sim.Recovery{Measured: true, From: 40 * time.Second, Recovered: i < recovered, Time: time.Duration(took * 1e9), Normal: 1, Final: 0.02}
			if success > 0 {
				r.Latency = sim.Latency{Count: 1, P50: 12 * ms, P99: 1234 * ms}
				m.P99 = sim.Estimate{Mean: 1.234, Half: 0.05 * half}
			}
			m.Results = append(m.Results, r)
		}
		return m
	}
	up := func(int) float64 { return 250 }
	down := func(i int) float64 {
		if i >= 15 && i < 25 {
			return 0
		}
		return 250
	}
	storm := func(i int) float64 {
		if i < 15 {
			return 250
		}
		return 1000
	}
	zero := func(int) float64 { return 0 }
	return []sim.Summary{
		build("steady", seeds, 0.91234, 1, 12.3, series(down, up), 0),
		build("storming", seeds/3, 0.31, 3.987, 44, series(func(i int) float64 { return 1250 - storm(i)*1.25 + 62 }, storm), 1234),
		build("a-rather-long-name-of-one", 0, 0, 4, 0, series(zero, storm), 0),
	}
}

func fixedOutcome(seeds int) outcome {
	o := outcome{simulation: simulation{world: world{scenario: fixedScenario()}, seed: 1, seeds: seeds, cells: make([]world, 1)}}
	all := fixedSummaries(seeds)
	for _, m := range all {
		o.contenders = append(o.contenders, contender{Contender: m.Contender})
	}
	o.results = [][]sim.Summary{all}
	o.cells[0] = o.world
	return o
}

func comparison(t *testing.T, o outcome, bars term.Bars) string {
	t.Helper()
	var out bytes.Buffer
	if err := printComparison(&out, o, bars); err != nil {
		t.Fatal(err)
	}
	clitest.Width(t, out.String(), tableWidth)
	return out.String()
}

func TestComparison(t *testing.T) {
	golden.File(t, "testdata/fixed.txt", comparison(t, fixedOutcome(1), term.Blocks))
	golden.File(t, "testdata/fixed-seeds.txt", comparison(t, fixedOutcome(3), term.Blocks))
	ascii := comparison(t, fixedOutcome(1), term.ASCII)
	golden.File(t, "testdata/fixed-ascii.txt", ascii)
	for _, block := range string(term.Blocks) + "▔·" {
		if strings.ContainsRune(ascii, block) {
			t.Errorf("%c is not ASCII", block)
		}
	}
}

func TestComparisonOfAnInterruptedRun(t *testing.T) {
	o := fixedOutcome(3)
	o.interrupted = true
	all := o.results[0]
	cut := &all[1].Results[1]
	cut.Interrupted, cut.End = true, 50*time.Second
	all[1].Results = all[1].Results[:2]
	first := &all[0].Results[0]
	first.Interrupted, first.Series.Goodput, first.Series.First, first.Series.Retries = true, first.Series.Goodput[:20], first.Series.First[:20], first.Series.Retries[:20]
	o.results[0] = all[:2] // the third had not begun
	golden.File(t, "testdata/fixed-interrupted.txt", comparison(t, o, term.Blocks))
}

func TestNothingIsKnownOfWhatHadNotBegun(t *testing.T) {
	o := fixedOutcome(1)
	o.interrupted, o.results[0] = true, nil
	if text := comparison(t, o, term.Blocks); !strings.Contains(text, "0 of 3 runs were complete") {
		t.Errorf("printed\n%s", text)
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
	if got := faultAxis(s, 20, time.Second, term.Blocks); got != "0▔···▔▔········▔···· 20 s" {
		t.Errorf("got %s", got)
	}
	s.Services[0].Faults = s.Services[0].Faults[:1]
	if got := faultAxis(s, 20, time.Second, term.ASCII); got != "0....^^........ 20 s" {
		t.Errorf("got %s", got)
	}
}

func TestInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 1500: "1.5 µs", 51200: "51.2 µs", 12 * ms: "12 ms", 12345 * time.Microsecond: "12.3 ms", 999 * ms: "999 ms", time.Second: "1 s",
		12345 * ms: "12.3 s", 90 * time.Second: "90 s", 10 * time.Minute: "10 min", 125 * time.Minute: "125 min", 5 * time.Hour: "5 h", 9000 * time.Hour: "9000 h", -time.Second: "-1 s",
	} {
		if got := inWords(d); got != want {
			t.Errorf("inWords(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestNumbersInWords(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 999: "999", 1000: "1,000", 25e6: "25,000,000", -1234: "-1,234", 250.5: "250.5", 0.5: "0.5"} {
		if got := grouped(v); got != want {
			t.Errorf("grouped(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 950: "950", 999.7: "1k", 12345: "12.3k", 4.1e6: "4.1M", 2e9: "2G"} {
		if got := abbreviated(v); got != want {
			t.Errorf("abbreviated(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0%", 1: "100%", 0.5: "50.0%", 0.9999999: "99.99%", 0.9998: "99.98%", 0.00001: "0.01%", 0.0004: "0.04%"} {
		if got := percentOf(v); got != want {
			t.Errorf("percentOf(%v) = %q, want %q", v, got, want)
		}
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
	} {
		if got := recoveryCell(c.m); got != c.want {
			t.Errorf("%+v: %q, want %q", c.m.Results[0].Recovery, got, c.want)
		}
	}
	for _, c := range []struct {
		m    sim.Summary
		want string
	}{
		{summary(again), "Back for a time, and worse again: ours (first after 2 s, 3 relapses)."},
		{summary(again, well), "Back for a time, and worse again: ours (first after 2 s, 3 relapses with 1 of 2 seeds)."},
		{summary(well), ""},
	} {
		text := strings.Join(findings(sim.Scenario{}, []sim.Summary{c.m}), "\n")
		if got := strings.Contains(strings.Join(strings.Fields(text), " "), "worse again"); got != (c.want != "") || !strings.Contains(strings.Join(strings.Fields(text), " "), c.want) {
			t.Errorf("%q, want %q in it", text, c.want)
		}
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
	all, err := sim.Compare(t.Context(), s, []sim.Contender{{Name: "lull"}}, sim.CompareOptions{Seeds: 2})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	writeFleets(&out, s, columnsFor(s, all), all)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"Of each fleet", "lull ours 100% ±0.0 1.00 ±0.00", "lull theirs 0% ±0.0 1.00 ±0.00"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	out.Reset()
	if writeFleets(&out, s, columnsFor(s, all), fixedSummaries(1)); out.Len() > 0 {
		t.Errorf("of one fleet:\n%s", out.String())
	}
}
