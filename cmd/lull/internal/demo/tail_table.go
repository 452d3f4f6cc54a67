package demo

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

const (
	tailHead = `
                        p50     p99   p99.9    requests   worst
                calls    ms      ms      ms    per call  second  failed
`
	tailRow = "  %-12s %6d %5s %7s %7s %11.2f %+6.0f%% %6.1f%%\n"
)

// printTailTable is printTable for the scenario tail.
func printTailTable(w io.Writer, r result) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, tailSettingText(r.setting))
	if r.interrupted {
		fmt.Fprintf(out, "\nInterrupted after %.1f s. These are the calls begun until then; %d of them had\n"+
			"not ended, and are not counted.\n", r.measured.Seconds(), r.unfinished)
	}
	fmt.Fprint(out, tailHead)
	for _, part := range []struct {
		title string
		of    func(tailFigures) *periodFigures
	}{
		{"before", func(f tailFigures) *periodFigures { return f.Before }},
		{"everything is slow", func(f tailFigures) *periodFigures { return f.Slow }},
		{"after", func(f tailFigures) *periodFigures { return f.After }},
		{"the whole run", func(f tailFigures) *periodFigures { return f.Whole }},
	} {
		if part.title == "the whole run" && r.setting.Outage > 0 && r.measured <= r.setting.beforeEnd() {
			continue // it is all "before"
		}
		title := part.title + "\n"
		for _, f := range r.hedgers {
			p := part.of(f)
			if p == nil {
				continue
			}
			fmt.Fprint(out, title)
			title = ""
			fmt.Fprintf(out, tailRow, f.Name, p.Calls, cell(p.P50), cell(p.P99), cell(p.P999),
				p.AttemptsPerCall, 100*p.WorstSecond, 100*p.FailureRate)
		}
	}
	if found := tailFindings(r); len(found) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(found, "\n"))
	}
	for _, w := range tailWarnings(r) {
		fmt.Fprintf(out, "\n%s\n", w)
	}
	fmt.Fprintf(out, "\n%s", definitionsOfTail)
	return out.Flush()
}

// cell is a time in a column of milliseconds.
func cell(ms *float64) string {
	if ms == nil {
		return "never"
	}
	return fmt.Sprintf("%.0f", *ms)
}
