package simulate

import (
	"encoding/json"
	"io"
	"math"
	"strconv"

	"github.com/lullgo/lull/lab/sim"
)

// A figure is a number in a file. It has nine significant digits, fewer than a float, so
// that two files do not differ by the last bits of a sum.
type figure float64

func (f figure) String() string {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	if a := math.Abs(v); v == math.Trunc(v) && a < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', 8, 64), 64)
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// MarshalJSON writes null for NaN and infinity.
func (f figure) MarshalJSON() ([]byte, error) {
	if text := f.String(); text != "" {
		return []byte(text), nil
	}
	return []byte("null"), nil
}

func figuresOf(values []float64) []figure {
	all := make([]figure, len(values))
	for i, v := range values {
		all[i] = figure(v)
	}
	return all
}

// jsonSimulation is the output of --json. Fields whose names end in _s are in seconds,
// rates are per second, shares are from 0 to 1. The same version, seed and arguments
// give the same bytes on any machine, with any number of workers. Fields may be added;
// none changes its meaning.
type jsonSimulation struct {
	Schema   int    `json:"schema"` // 1
	Scenario any    `json:"scenario"`
	Policies any    `json:"policies"`
	Seed     uint64 `json:"seed"`
	Seeds    int    `json:"seeds"`
	// Interrupted: some figures are of only a part of the time.
	Interrupted bool          `json:"interrupted"`
	Contenders  []jsonSummary `json:"contenders,omitempty"` // without a sweep
	Sweep       *jsonSweep    `json:"sweep,omitempty"`
}

// jsonPolicy is a policy that is compared. A preset may have options that are code and not
// data; only its name stands for them.
type jsonPolicy struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Preset bool   `json:"preset"`
	Policy any    `json:"policy"`
}

type jsonSweep struct {
	Axes  []jsonAxis `json:"axes"`
	Cells []jsonCell `json:"cells"` // row by row: the last axis changes first
}

type jsonAxis struct {
	Path   string   `json:"path"`
	Values []string `json:"values"`
}

type jsonCell struct {
	Values     []string      `json:"values"` // of the axes, in their order
	Contenders []jsonSummary `json:"contenders"`
}

// jsonSummary is a policy: means over its seeds, and its runs.
type jsonSummary struct {
	Name           string        `json:"name"`
	Success        jsonEstimate  `json:"success"`
	Amplification  jsonEstimate  `json:"amplification"`
	PeakOverNormal jsonEstimate  `json:"peak_over_normal"`
	P99            jsonEstimate  `json:"p99_s"`
	Wasted         jsonEstimate  `json:"wasted"`     // share of the attempts
	Refused        jsonEstimate  `json:"refused"`    // share of the calls
	Recovery       *jsonEstimate `json:"recovery_s"` // null if no seed recovered
	Recovered      int           `json:"recovered"`  // seeds
	Runs           []jsonSeed    `json:"runs"`
}

// jsonEstimate is a mean over the seeds and the half width of its 95 %
// confidence interval, 0 for one seed.
type jsonEstimate struct {
	Mean figure `json:"mean"`
	Half figure `json:"half"`
}

type jsonSeed struct {
	Seed        uint64       `json:"seed"`
	Interrupted bool         `json:"interrupted"`
	End         figure       `json:"end_s"`
	Totals      jsonTotals   `json:"totals"`
	Recovery    jsonRecovery `json:"recovery"`
	Latency     jsonLatency  `json:"latency"`
	Series      *jsonSeries  `json:"series,omitempty"` // not in a sweep
	Fleets      []jsonFleet  `json:"fleets,omitempty"` // if the scenario has several
	Topics      []jsonTopic  `json:"topics,omitempty"` // if the scenario has any
	// Connections are there if they are simulated.
	Connections *jsonConnections `json:"connections,omitempty"`
	// Links are there if messages wait for the links of fleets.
	Links *jsonLinks `json:"links,omitempty"`
}

// jsonTotals count what happened after the warm-up.
type jsonTotals struct {
	Calls            int64            `json:"calls"`
	Succeeded        int64            `json:"succeeded"`
	Refused          int64            `json:"refused"`
	Unfinished       int64            `json:"unfinished"`
	Reasons          map[string]int64 `json:"reasons"`
	Attempts         int64            `json:"attempts"`
	Retries          int64            `json:"retries"`
	AttemptsTimedOut int64            `json:"attempts_timed_out"`
	AttemptsFailed   int64            `json:"attempts_failed"`
	Wasted           int64            `json:"wasted"`
	QueueFull        int64            `json:"queue_full"`
	RateLimited      int64            `json:"rate_limited"`
	Errors           int64            `json:"errors"`
	Dropped          int64            `json:"dropped"`
	Shed             int64            `json:"shed,omitempty"`
	Effects          int64            `json:"effects"`
	Duplicates       int64            `json:"duplicates"`
	Reloads          int64            `json:"reloads"`
	Hits             int64            `json:"cache_hits,omitempty"`
	Misses           int64            `json:"cache_misses,omitempty"`
	Collections      int64            `json:"collections,omitempty"`
	Paused           figure           `json:"paused_s,omitempty"`
	OutOfMemory      int64            `json:"out_of_memory,omitempty"`
	Ejections        int64            `json:"ejections,omitempty"`
	Disconnects      int64            `json:"disconnects,omitempty"`
	Amplification    figure           `json:"amplification"`
	PeakRate         figure           `json:"peak_rate"`
	PeakAt           figure           `json:"peak_at_s"`
	NormalRate       figure           `json:"normal_rate"`
	PeakOverNormal   figure           `json:"peak_over_normal"`
	WorstMinute      figure           `json:"worst_minute"`
	Oldest           figure           `json:"oldest_s"` // the longest time that a user waited
	Last             figure           `json:"last_s"`
	MeanCompletion   figure           `json:"mean_completion_s"`
	Events           int64            `json:"events"`
}

// jsonTopic counts how the messages of a topic ended. They are calls in the totals, too.
type jsonTopic struct {
	Name      string           `json:"name"`
	Sent      int64            `json:"sent"`
	Handled   int64            `json:"handled"`
	Dead      int64            `json:"dead"`
	Left      int64            `json:"left"`
	Reasons   map[string]int64 `json:"reasons"` // of dead letters
	Attempts  int64            `json:"attempts"`
	Disturbed int64            `json:"attempts_during_faults"`
	Deferred  int64            `json:"deferred"`
	Lapsed    int64            `json:"lapsed"`
	CaughtUp  *figure          `json:"caught_up_s"` // null if it did not, or nothing was measured
}

// jsonFleet counts the calls of one fleet.
type jsonFleet struct {
	Name          string           `json:"name"`
	Calls         int64            `json:"calls"`
	Succeeded     int64            `json:"succeeded"`
	Refused       int64            `json:"refused"`
	Unfinished    int64            `json:"unfinished"`
	Reasons       map[string]int64 `json:"reasons"`
	Attempts      int64            `json:"attempts"`
	Retries       int64            `json:"retries"`
	Disconnects   int64            `json:"disconnects,omitempty"`
	Amplification figure           `json:"amplification"`
	Recovery      jsonRecovery     `json:"recovery"`
	Latency       jsonLatency      `json:"latency"`
}

type jsonRecovery struct {
	Measured  bool    `json:"measured"`
	Few       bool    `json:"few_calls"` // too few for a verdict
	From      figure  `json:"from_s"`
	Recovered bool    `json:"recovered"`
	Time      *figure `json:"time_s"` // null if it did not recover, or nothing was measured
	First     figure  `json:"first_s"`
	Relapses  int     `json:"relapses"`
	Within    figure  `json:"within_s"` // how exactly the times are known
	Normal    figure  `json:"normal"`
	Final     figure  `json:"final"`
}

// jsonLatency is of calls that succeeded.
type jsonLatency struct {
	Count int64  `json:"count"`
	Mean  figure `json:"mean_s"`
	P50   figure `json:"p50_s"`
	P90   figure `json:"p90_s"`
	P99   figure `json:"p99_s"`
	P999  figure `json:"p999_s"`
	Max   figure `json:"max_s"`
}

// jsonSeries has a value for each step, under the names of seriesOf.
type jsonSeries struct {
	Step   figure              `json:"step_s"`
	Values map[string][]figure `json:"values"` // printed in the order of the names
}

func printJSON(w io.Writer, o outcome) error {
	v := jsonSimulation{Schema: 1, Scenario: plainData(o.scenario), Seed: o.seed, Seeds: o.seeds, Interrupted: o.interrupted}
	policies := make([]jsonPolicy, len(o.contenders))
	for i, c := range o.contenders {
		policies[i] = jsonPolicy{c.Name, c.Title, c.preset, plainData(c.Policy)}
	}
	v.Policies = policies
	if o.swept() {
		v.Sweep = &jsonSweep{}
		for _, x := range o.axes {
			v.Sweep.Axes = append(v.Sweep.Axes, jsonAxis{x.path, x.values})
		}
		for i := range o.cells {
			v.Sweep.Cells = append(v.Sweep.Cells, jsonCell{o.valuesAt(i), jsonSummaries(o.results[i])})
		}
	} else {
		v.Contenders = jsonSummaries(o.results[0])
	}
	return json.NewEncoder(w).Encode(v)
}

func jsonSummaries(all []sim.Summary) []jsonSummary {
	out := []jsonSummary{}
	for _, m := range all {
		s := jsonSummary{
			Name: m.Contender.Name, Success: estimateOf(m.Success), Amplification: estimateOf(m.Amplification),
			PeakOverNormal: estimateOf(m.PeakOverNormal), P99: estimateOf(m.P99), Wasted: estimateOf(m.Wasted), Refused: estimateOf(m.Refused), Recovered: m.Recovered, Runs: []jsonSeed{},
		}
		if m.Recovered > 0 {
			e := estimateOf(m.Recovery)
			s.Recovery = &e
		}
		for _, r := range m.Results {
			s.Runs = append(s.Runs, jsonResult(r))
		}
		out = append(out, s)
	}
	return out
}

func estimateOf(e sim.Estimate) jsonEstimate { return jsonEstimate{figure(e.Mean), figure(e.Half)} }

func jsonResult(r sim.Result) jsonSeed {
	t, l := r.Totals, r.Latency
	reasons := t.Reasons
	if reasons == nil {
		reasons = map[string]int64{}
	}
	out := jsonSeed{
		Seed: r.Seed, Interrupted: r.Interrupted, End: figure(r.End.Seconds()),
		Totals: jsonTotals{
			Calls: t.Calls, Succeeded: t.Succeeded, Refused: t.Refused, Unfinished: t.Unfinished, Reasons: reasons,
			Attempts: t.Attempts, Retries: t.Retries, AttemptsTimedOut: t.AttemptsTimedOut, AttemptsFailed: t.AttemptsFailed,
			Wasted: t.Wasted, QueueFull: t.QueueFull, RateLimited: t.RateLimited, Errors: t.Errors, Dropped: t.Dropped, Shed: t.Shed,
			Effects: t.Effects, Duplicates: t.Duplicates, Reloads: t.Reloads,
			Hits: t.Hits, Misses: t.Misses, Collections: t.Collections, Paused: figure(t.Paused.Seconds()), OutOfMemory: t.OutOfMemory, Ejections: t.Ejections, Disconnects: t.Disconnects,
			Amplification: figure(t.Amplification),
			PeakRate:      figure(t.PeakRate), PeakAt: figure(t.PeakAt.Seconds()), NormalRate: figure(t.NormalRate),
			PeakOverNormal: figure(t.PeakOverNormal), WorstMinute: figure(t.WorstMinute), Oldest: figure(t.Oldest.Seconds()), Last: figure(t.Last.Seconds()),
			MeanCompletion: figure(t.MeanCompletion.Seconds()), Events: t.Events,
		},
		Recovery: recoveryOf(r.Recovery),
		Latency:  latencyOf(l),
	}
	for _, f := range r.Fleets {
		t := f.Totals
		out.Fleets = append(out.Fleets, jsonFleet{
			Name: f.Name, Calls: t.Calls, Succeeded: t.Succeeded, Refused: t.Refused, Unfinished: t.Unfinished, Reasons: t.Reasons,
			Attempts: t.Attempts, Retries: t.Retries, Disconnects: t.Disconnects, Amplification: figure(t.Amplification),
			Recovery: recoveryOf(f.Recovery), Latency: latencyOf(f.Latency),
		})
	}
	out.Connections, out.Links = connectionsOf(r.Connections), linksOf(r.Links)
	for _, t := range r.Topics {
		v := jsonTopic{
			Name: t.Name, Sent: t.Sent, Handled: t.Handled, Dead: t.Dead, Left: t.Left, Reasons: t.Reasons,
			Attempts: t.Attempts, Disturbed: t.Disturbed, Deferred: t.Deferred, Lapsed: t.Lapsed,
		}
		if t.Caught {
			took := figure(t.CaughtUp.Seconds())
			v.CaughtUp = &took
		}
		out.Topics = append(out.Topics, v)
	}
	if r.Series.Step > 0 {
		out.Series = &jsonSeries{Step: figure(r.Series.Step.Seconds()), Values: map[string][]figure{}}
		for _, line := range seriesOf(r) {
			out.Series.Values[line.name] = figuresOf(line.values)
		}
	}
	return out
}

func recoveryOf(r sim.Recovery) jsonRecovery {
	out := jsonRecovery{
		Measured: r.Measured, Few: r.Few, From: figure(r.From.Seconds()), Recovered: r.Recovered, First: figure(r.First.Seconds()),
		Relapses: r.Relapses, Within: figure(r.Within.Seconds()), Normal: figure(r.Normal), Final: figure(r.Final),
	}
	if r.Recovered {
		took := figure(r.Time.Seconds())
		out.Time = &took
	}
	return out
}

func latencyOf(l sim.Latency) jsonLatency {
	return jsonLatency{
		Count: l.Count, Mean: figure(l.Mean.Seconds()), P50: figure(l.P50.Seconds()), P90: figure(l.P90.Seconds()),
		P99: figure(l.P99.Seconds()), P999: figure(l.P999.Seconds()), Max: figure(l.Max.Seconds()),
	}
}
