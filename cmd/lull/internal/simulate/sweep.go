package simulate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/problem"
)

// A sweepAxis is one --sweep: a field and its values.
type sweepAxis struct {
	path   string
	values []string
}

const (
	mostAxes   = 2
	mostValues = 1000
)

// axes reads the sweeps: rows first, then columns.
func axes(l *problem.List, sweeps cli.Texts) []sweepAxis {
	l.Check(len(sweeps) <= mostAxes, "--sweep", fmt.Sprintf("given %d times", len(sweeps)), "at most two of them")
	var all []sweepAxis
	cells := 1
	for _, sweep := range sweeps {
		path, list, found := strings.Cut(string(sweep), "=")
		values, err := valuesOf(list)
		if !found || path == "" || err != nil {
			l.Add("--sweep", sweep.Quoted(), "PATH=a,b,c or PATH=from..to/step, of numbers or durations, such as clients=1,100,10k or services.0.faults.0.for=1s..10s/3s")
			continue
		}
		for _, other := range all {
			l.Check(other.path != path, "--sweep", path+" twice", "two different fields")
		}
		all = append(all, sweepAxis{path, values})
		cells *= len(values)
	}
	l.Check(cells <= mostCells, "--sweep", fmt.Sprintf("%d combinations", cells), fmt.Sprintf("at most %d", mostCells))
	if len(*l) > 0 {
		return nil
	}
	return all
}

// valuesOf reads a,b,c or from..to/step.
func valuesOf(list string) ([]string, error) {
	from, rest, isRange := strings.Cut(list, "..")
	if !isRange {
		var values []string
		seen := map[string]bool{}
		for v := range strings.SplitSeq(list, ",") {
			v = strings.TrimSpace(v)
			if v == "" || seen[v] {
				return nil, fmt.Errorf("empty or repeated value")
			}
			seen[v] = true
			values = append(values, v)
		}
		return values, nil
	}
	to, step, _ := strings.Cut(rest, "/")
	if a, b, by, ok := three(from, to, step, time.ParseDuration); ok {
		return steps(float64(a), float64(b), float64(by), func(v float64) string { return time.Duration(math.Round(v)).String() })
	}
	if a, b, by, ok := three(from, to, step, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }); ok {
		return steps(a, b, by, func(v float64) string { return strconv.FormatFloat(v, 'g', 12, 64) })
	}
	return nil, fmt.Errorf("no numbers, or numbers of different kinds")
}

func three[T any](a, b, c string, parse func(string) (T, error)) (x, y, z T, ok bool) {
	x, errA := parse(strings.TrimSpace(a))
	y, errB := parse(strings.TrimSpace(b))
	z, errC := parse(strings.TrimSpace(c))
	return x, y, z, errA == nil && errB == nil && errC == nil
}

// steps returns the values from a to b. It includes b if a whole number of steps leads
// there.
func steps(a, b, by float64, format func(float64) string) ([]string, error) {
	n := math.Floor((b-a)/by + 1e-9)
	if !(by > 0) || !(n >= 0 && n < mostValues) {
		return nil, fmt.Errorf("no steps, or too many")
	}
	var values []string
	for i := range int(n) + 1 {
		values = append(values, format(a+float64(i)*by))
	}
	return values, nil
}

// cellsOf returns the changes of each pair of values, row by row. Without a sweep that is
// one cell without changes.
func cellsOf(axes []sweepAxis) [][]change {
	cells := [][]change{nil}
	for _, x := range axes {
		var more [][]change
		for _, c := range cells {
			for _, v := range x.values {
				more = append(more, append(c[:len(c):len(c)], change{"--sweep", x.path + "=" + v}))
			}
		}
		cells = more
	}
	return cells
}
