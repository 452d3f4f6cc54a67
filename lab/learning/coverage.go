package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// What is counted of each kind of source, in the order of the table.
const (
	timeouts = iota
	errorRate
	arrivalRate
	median
	tail
	medianWaits
	tailWaits
	capacity
	capacityUnknown
	kind
	counted
)

var countedNames = [counted]string{"attempt timeout", "errors", "arrivals", "p50", "p99", "p50 with waits", "p99 with waits",
	"capacity within 10 %", "capacity not known", "kind of incident"}

// A count is of how many were right, of those that were stated, of those that could be.
type count struct {
	right, stated, all int
	widths             []float64 // of intervals: how much more the upper end is than the lower one, as a share
}

func (c count) String() string {
	if c.all == 0 {
		return "-"
	}
	text := fmt.Sprintf("%d of %d", c.right, c.stated)
	if c.stated > 0 {
		text += fmt.Sprintf(" (%.0f %%)", 100*float64(c.right)/float64(c.stated))
	}
	if c.widths != nil {
		slices.Sort(c.widths)
		text += fmt.Sprintf(", width %.2g %%", 100*c.widths[len(c.widths)/2])
	}
	if c.stated < c.all {
		text += fmt.Sprintf(", not stated %d", c.all-c.stated)
	}
	return text
}

// A judgement counts for one kind of source, and lists what was wrong.
type judgement struct {
	counts   [counted]count
	failures []string
}

// runCoverage has lull learn read what worlds have left that are known, and counts how often the truth lies in the intervals that it states.
func runCoverage(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	judgements := make([]judgement, len(sources))
	for n := range options.worlds {
		w := drawWorld(options.seed + uint64(n))
		w.fly(ctx)
		for i, s := range sources {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if options.only != "" && options.only != s.name {
				continue
			}
			progress("coverage: world %d, %s", w.seed, s.name)
			folder := filepath.Join(options.folder, "coverage", fmt.Sprint(w.seed), strings.ReplaceAll(s.name, " ", "-"))
			must.Succeed(os.MkdirAll(folder, 0o700))
			learned, l, err := learn(ctx, folder, s.export(w, folder)...)
			if err != nil {
				judgements[i].failures = append(judgements[i].failures, fmt.Sprintf("world %d (%s): %v", w.seed, w.family, err))
				continue
			}
			judgements[i].judge(ctx, w, learned, l)
			if !options.keep {
				must.Succeed(os.RemoveAll(folder))
			}
		}
	}
	fmt.Fprintf(out, "%d worlds, from seed %d on: how often the truth lies in the interval that lull learn states (of those that it states).\n\n", options.worlds, options.seed)
	row(out, append([]string{"source"}, countedNames[:]...)...)
	fmt.Fprintln(out, strings.Repeat("|---", 1+counted)+"|")
	for i, s := range sources {
		cells := []string{s.name}
		for _, c := range judgements[i].counts {
			cells = append(cells, c.String())
		}
		row(out, cells...)
	}
	for i, s := range sources {
		for k, text := range judgements[i].failures {
			if k == 0 {
				fmt.Fprintf(out, "\n%s:\n", s.name)
			}
			fmt.Fprintln(out, "-", text)
		}
	}
	return nil
}

func row(out io.Writer, cells ...string) { fmt.Fprintln(out, "| "+strings.Join(cells, " | ")+" |") }

// learn runs lull learn, and reads the world that it writes.
func learn(ctx context.Context, folder string, args ...string) (sim.Scenario, *scenario.Learned, error) {
	path := filepath.Join(folder, "world.yaml")
	if _, err := run(ctx, append([]string{"learn", "--quiet", "-o", path}, args...)...); err != nil {
		return sim.Scenario{}, nil, err
	}
	return scenario.ReadLearned(path)
}

// run runs the program lull, and returns what it prints. The error has what it writes to standard error.
func run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, lullProgram(), args...)
	var text bytes.Buffer
	cmd.Stderr = &text
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("lull %s: %w: %s", args[0], err, strings.TrimSpace(text.String()))
	}
	return out, err
}

// judge compares what was learned with w.
func (j *judgement) judge(ctx context.Context, w *world, s sim.Scenario, l *scenario.Learned) {
	service, fleet := &w.scenario.Services[0], &w.scenario.Fleets[0]
	within := func(what int, truth float64, low, high string, stated bool) {
		c := &j.counts[what]
		c.all++
		if !stated {
			return
		}
		c.stated++
		a, b := number(low), number(high)
		if a > 0 {
			c.widths = append(c.widths, b/a-1)
		}
		if a <= truth && truth <= b {
			c.right++
		} else {
			j.fail(w, "%s is %.5g, and %s to %s is stated", countedNames[what], truth, low, high)
		}
	}
	if w.timeouts >= 20 {
		low, high, ok := fact(l, "attempt timeout")
		within(timeouts, fleet.AttemptTimeout.Seconds(), low, high, ok)
	}
	low, high, ok := value(l, "services.0.errors")
	within(errorRate, service.Errors, low, high, ok)
	low, high, ok = value(l, "fleets.0.arrivals.rate")
	within(arrivalRate, fleet.Arrivals.Rate, low, high, ok)
	for _, q := range []struct {
		what, waits int
		name        string
		share       float64
	}{{median, medianWaits, "service time p50", 0.5}, {tail, tailWaits, "service time p99", 0.99}} {
		if w.waits {
			q.what = q.waits
		}
		low, high, ok = fact(l, q.name)
		within(q.what, w.answer(ctx, q.share), low, high, ok)
	}
	low, high, ok = fact(l, "capacity")
	if w.saturates {
		c := &j.counts[capacity]
		c.all++
		if ok {
			c.stated++
			if got := (number(low) + number(high)) / 2; math.Abs(got/w.capacity-1) <= 0.1 {
				c.right++
			} else {
				j.fail(w, "capacity is %.5g, and %s to %s is stated", w.capacity, low, high)
			}
		}
	}
	if w.calm {
		c := &j.counts[capacityUnknown]
		c.all++
		c.stated++
		if !ok {
			c.right++
		} else {
			j.fail(w, "capacity is not to be seen, and %s to %s is stated", low, high)
		}
	}
	c := &j.counts[kind]
	c.all++
	switch got := incidentOf(&s, l); got {
	case "":
	case w.family:
		c.stated++
		c.right++
	default:
		c.stated++
		j.fail(w, "the incident is %s, and %s is learnt", w.family, got)
	}
}

// incidentOf is the name of the family of the incident in a learned world, "" if it only asks what happened.
func incidentOf(s *sim.Scenario, l *scenario.Learned) string {
	var all []string
	for _, f := range s.Services[0].Faults {
		all = append(all, f.Kind.String())
	}
	for _, p := range s.Fleets[0].Arrivals.Ramp {
		if p.Factor > 1.25 {
			all = append(all, "spike")
			break
		}
	}
	if all == nil {
		for _, q := range l.Unknown {
			if q.Path == "services.0.faults" || q.Path == "fleets.0.arrivals.ramp" {
				return ""
			}
		}
		return "none"
	}
	return strings.Join(all, ", ")
}

func (j *judgement) fail(w *world, format string, args ...any) {
	j.failures = append(j.failures, fmt.Sprintf("world %d (%s, %s): ", w.seed, w.family, w.contender.Name)+fmt.Sprintf(format, args...))
}

func value(l *scenario.Learned, path string) (low, high string, ok bool) {
	for _, v := range l.Values {
		if v.Path == path && v.Low != "" {
			return v.Low, v.High, true
		}
	}
	return "", "", false
}

func fact(l *scenario.Learned, what string) (low, high string, ok bool) {
	for _, f := range l.Seen {
		if f.What == what && f.Low != "" {
			return f.Low, f.High, true
		}
	}
	return "", "", false
}

// number reads a number, a share or a duration, in seconds.
func number(text string) float64 {
	if digits, percent := strings.CutSuffix(text, "%"); percent {
		return must.Have(strconv.ParseFloat(digits, 64)) / 100
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds()
	}
	return must.Have(strconv.ParseFloat(text, 64))
}
