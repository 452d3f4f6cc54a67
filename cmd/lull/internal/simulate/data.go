package simulate

import (
	"bytes"
	"encoding"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// A figure is a number in a file. It has nine digits, so that files do not differ by the last bits of a sum.
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
	return choice.Each(values, func(v float64) figure { return figure(v) })
}

// jsonSimulation is the output of --json. Names in _s are seconds, rates are per second, shares from 0 to 1. The same version, seed and
// arguments give the same bytes on any machine. Fields may be added; none changes its meaning.
type jsonSimulation struct {
	Schema   int    `json:"schema"` // 1
	Scenario any    `json:"scenario"`
	Policies any    `json:"policies"`
	Seed     uint64 `json:"seed"`
	Seeds    int    `json:"seeds"`
	// Interrupted: some figures are of only a part of the time.
	Interrupted bool              `json:"interrupted"`
	Contenders  []json.RawMessage `json:"contenders,omitempty"` // without a sweep
	Sweep       *jsonSweep        `json:"sweep,omitempty"`
}

// jsonPolicy is a policy that is compared. A preset may have options that are code: only its name stands for them.
type jsonPolicy struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Preset bool   `json:"preset"`
	Policy any    `json:"policy"`
}

type jsonSweep struct {
	Axes  []sweepAxis `json:"axes"`
	Cells []jsonCell  `json:"cells"` // row by row: the last axis changes first
}

type jsonCell struct {
	Values     []string          `json:"values"` // of the axes, in their order
	Contenders []json.RawMessage `json:"contenders"`
}

// jsonSummary is a policy: means over its seeds, and its runs.
type jsonSummary struct {
	sim.Summary
	Runs []run
}

// A run is a sim.Result with its series, unless it is one of a sweep.
type run struct {
	sim.Result
	Steps json.RawMessage
}

// fieldsOf are the fields of some types that are written, in their order (see [writeStruct]).
var fieldsOf = map[reflect.Type]string{
	reflect.TypeFor[jsonSummary](): "Contender.Name Success Amplification WorstTenSeconds=worst_10s PeakOverNormal Held P99=p99_s Wasted Refused " +
		"Recovery=recovery_s!Recovered Recovered Runs",
	reflect.TypeFor[run]():          "Seed Interrupted End Totals Recovery Latency Steps=series? Fleets? Topics? Connections? Links?",
	reflect.TypeFor[sim.Estimate](): "Mean Half",
	reflect.TypeFor[sim.Totals](): "Calls Succeeded Degraded? Refused Unfinished Reasons Attempts Retries AttemptsTimedOut AttemptsFailed Wasted " +
		"QueueFull RateLimited Errors Dropped Shed? Effects Duplicates Reloads Hits=cache_hits? Misses=cache_misses? Collections? Paused? " +
		"OutOfMemory? Ejections? Disconnects? Amplification PeakRate PeakAt NormalRate PeakOverNormal WorstMinute WorstTenSeconds=worst_10s Held Oldest Last " +
		"MeanCompletion Events",
	reflect.TypeFor[sim.Held]():             "Seconds=calls_s Attempts=attempts_s Disturbed=disturbed_s P50 P99 Max Most MostAt",
	reflect.TypeFor[sim.Recovery]():         "Measured Few=few_calls From Recovered Time!Recovered First Relapses Within Normal Final",
	reflect.TypeFor[sim.Latency]():          "Count Mean P50 P90 P99 P999 Max",
	reflect.TypeFor[sim.ConnectionTotals](): "Dials Failed=dials_failed NoPort Waits Waited Broken Refused Dropped Most",
	reflect.TypeFor[sim.LinkTotals]():       "Most Dropped Lost",
	reflect.TypeFor[sim.FleetResult](): "Name Totals.Calls Totals.Succeeded Totals.Degraded? Totals.Refused Totals.Unfinished Totals.Reasons Totals.Attempts " +
		"Totals.Retries Totals.Disconnects? Totals.Amplification Totals.Held Recovery Latency",
	reflect.TypeFor[sim.TopicResult](): "Name Sent Handled Dead Left Reasons Attempts Disturbed=attempts_during_faults Deferred Lapsed " +
		"CaughtUp!Caught",
}

func printJSON(w io.Writer, o outcome) error {
	v := jsonSimulation{Schema: 1, Scenario: plainData(o.scenario), Seed: o.seed, Seeds: o.seeds, Interrupted: o.interrupted}
	v.Policies = choice.Each(o.contenders, func(c contender) jsonPolicy { return jsonPolicy{c.Name, c.Title, c.preset, plainData(c.Policy)} })
	if o.swept() {
		v.Sweep = &jsonSweep{Axes: o.axes}
		for i := range o.cells {
			v.Sweep.Cells = append(v.Sweep.Cells, jsonCell{o.valuesAt(i), jsonSummaries(o.results[i])})
		}
	} else {
		v.Contenders = jsonSummaries(o.results[0])
	}
	return json.NewEncoder(w).Encode(v)
}

func jsonSummaries(all []sim.Summary) []json.RawMessage {
	return choice.Each(all, func(m sim.Summary) json.RawMessage { return plainData(jsonSummary{m, choice.Each(m.Results, runOf)}) })
}

func runOf(r sim.Result) run {
	if r.Series.Step == 0 {
		return run{Result: r}
	}
	values := map[string][]figure{} // printed in the order of the names
	for _, line := range seriesOf(r) {
		values[line.name] = figuresOf(line.values)
	}
	return run{r, jsonText(map[string]any{"step_s": figure(r.Series.Step.Seconds()), "values": values})}
}

// plainData returns every field that is not zero as JSON, in snake_case and in its order. A duration is in seconds, with a name in _s,
// and -1 for "none".
func plainData(v any) json.RawMessage {
	var b bytes.Buffer
	writeData(&b, reflect.ValueOf(v))
	return b.Bytes()
}

func writeData(b *bytes.Buffer, v reflect.Value) {
	switch x := v.Interface().(type) {
	case json.Marshaler:
		b.Write(jsonText(x))
		return
	case time.Duration:
		if x < 0 {
			b.WriteString("-1")
			return
		}
		b.Write(jsonText(figure(x.Seconds())))
		return
	case encoding.TextMarshaler:
		if text, err := x.MarshalText(); err == nil {
			b.Write(jsonText(string(text)))
			return
		}
	case fmt.Stringer:
		if v.Kind() != reflect.Struct {
			b.Write(jsonText(x.String()))
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		writeStruct(b, v)
	case reflect.Slice, reflect.Array:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			writeData(b, v.Index(i))
		}
		b.WriteByte(']')
	case reflect.Float64:
		b.Write(jsonText(figure(v.Float())))
	default:
		b.Write(jsonText(v.Interface()))
	}
}

// writeStruct writes the listed fields, or all that are not zero. An entry is a field, or the path to it. "=key" renames it, "?" at the
// end leaves it out if it is zero, and "!Field" makes it null if that field is zero.
func writeStruct(b *bytes.Buffer, v reflect.Value) {
	list := strings.Fields(fieldsOf[v.Type()])
	if len(list) == 0 {
		for f := range v.Type().Fields() {
			if f.IsExported() {
				list = append(list, f.Name+"?")
			}
		}
	}
	separator := "{"
	for _, entry := range list {
		path, optional := strings.CutSuffix(entry, "?")
		path, other, nullable := strings.Cut(path, "!")
		path, key, named := strings.Cut(path, "=")
		field := v
		for name := range strings.SplitSeq(path, ".") {
			field = field.FieldByName(name)
		}
		if optional && field.IsZero() {
			continue
		}
		if !named {
			key = codec.Path(path[strings.LastIndexByte(path, '.')+1:])
			if field.Type() == reflect.TypeFor[time.Duration]() {
				key += "_s"
			}
		}
		b.WriteString(separator)
		separator = ","
		b.Write(jsonText(key))
		b.WriteByte(':')
		if nullable && v.FieldByName(other).IsZero() {
			b.WriteString("null")
		} else {
			writeData(b, field)
		}
	}
	b.WriteString(strings.TrimPrefix(separator, ",") + "}")
}

// jsonText returns a value that encoding/json always accepts.
func jsonText(v any) json.RawMessage {
	return must.Have(json.Marshal(v))
}

// printSeriesCSV prints a line for each point: contender, seed, end of the step in seconds, series as in JSON (also refused.REASON and
// backlog.TOPIC), value.
func printSeriesCSV(w io.Writer, o outcome) error {
	out := csv.NewWriter(w)
	out.Write([]string{"contender", "seed", "time_s", "series", "value"})
	for _, m := range o.results[0] {
		for _, r := range m.Results {
			seed := strconv.FormatUint(r.Seed, 10)
			for _, line := range seriesOf(r) {
				for i, v := range line.values {
					at := time.Duration(i+1) * r.Series.Step
					out.Write([]string{m.Contender.Name, seed, figure(at.Seconds()).String(), line.name, figure(v).String()})
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// A namedSeries is one of sim.Series and its name in files.
type namedSeries struct {
	name   string
	values []float64
}

// seriesOf returns all series in a fixed order. Durations are in seconds.
func seriesOf(r sim.Result) []namedSeries {
	s := r.Series
	all := []namedSeries{
		{"calls", s.Calls}, {"first_attempts", s.First}, {"retries", s.Retries},
		{"goodput", s.Goodput}, {"good", s.Good}, {"failed", s.Failed}, {"wasted", s.Wasted},
		{"queue", s.Queue}, {"busy", s.Busy}, {"open", s.Open}, {"held", s.Held},
		{"p50_s", inSeconds(s.P50)}, {"p99_s", inSeconds(s.P99)},
	}
	for _, t := range r.Topics {
		all = append(all, namedSeries{"backlog." + t.Name, t.Backlog})
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Refused)) {
		all = append(all, namedSeries{"refused." + reason, s.Refused[reason]})
	}
	return all
}

func inSeconds(all []time.Duration) []float64 {
	return choice.Each(all, time.Duration.Seconds)
}

// printSweepCSV prints a line for each cell and policy: the values of the axes, under their paths, and the summary.
func printSweepCSV(w io.Writer, o outcome) error {
	out := csv.NewWriter(w)
	head := choice.Each(o.axes, func(x sweepAxis) string { return x.Path })
	out.Write(append(head, "contender", "seeds", "recovered", "recovery_s", "recovery_s_half", "success", "success_half",
		"amplification", "amplification_half", "worst_10s", "worst_10s_half", "held", "held_half", "peak_over_normal", "peak_over_normal_half", "p99_s", "p99_s_half"))
	for i := range o.cells {
		for _, m := range o.results[i] {
			line := o.valuesAt(i)
			line = append(line, m.Contender.Name, strconv.Itoa(len(m.Results)), strconv.Itoa(m.Recovered))
			recovery := choice.Either(m.Recovered > 0, meanAndHalf(m.Recovery), []string{"", ""})
			line = append(line, recovery...)
			for _, e := range []sim.Estimate{m.Success, m.Amplification, m.WorstTenSeconds, m.Held, m.PeakOverNormal, m.P99} {
				line = append(line, meanAndHalf(e)...)
			}
			out.Write(line)
		}
	}
	out.Flush()
	return out.Error()
}

func meanAndHalf(e sim.Estimate) []string {
	return []string{figure(e.Mean).String(), figure(e.Half).String()}
}

func (o outcome) valuesAt(cell int) []string {
	values := make([]string, len(o.axes))
	for i := len(o.axes) - 1; i >= 0; i-- {
		n := len(o.axes[i].Values)
		values[i] = o.axes[i].Values[cell%n]
		cell /= n
	}
	return values
}
