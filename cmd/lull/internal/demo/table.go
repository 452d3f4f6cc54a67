package demo

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

const (
	tableHead = `
                              per   attempts/s                p50   p99   back
client         calls attempts call normal  peak ratio success  ms    ms  after
`
	tableRow = "%-14s %5d %8d %4.2f %6.0f %5.0f %5.1f %6.1f%% %5.0f %5.0f %6s\n"
)

// printTable prints the setting, the figures, what became of whom, and how the
// figures are defined. It fits 80 columns.
func printTable(w io.Writer, r result) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, settingText(r.setting))
	if r.interrupted {
		fmt.Fprintf(out, "\nInterrupted after %.1f s. These are the calls begun until then; %d of them had\n"+
			"not ended and count as calls, but neither in the success rate nor in the times.\n", r.measured.Seconds(), r.unfinished)
	}
	fmt.Fprint(out, tableHead)
	for _, f := range r.clients {
		fmt.Fprintf(out, tableRow, f.Name, f.Calls, f.Attempts, f.Amplification, f.NormalRPS, f.PeakRPS, f.PeakRatio,
			100*f.SuccessRate, f.P50, f.P99, backAfter(r, f))
	}
	fmt.Fprintf(out, "\n%s\n", strings.Join(findings(r), "\n"))
	for _, w := range warnings(r) {
		fmt.Fprintf(out, "\n%s\n", w)
	}
	fmt.Fprintf(out, "\n%s", definitions)
	return out.Flush()
}

// backAfter is the time to recover in words.
func backAfter(r result, f figures) string {
	switch {
	case f.Recovery != nil:
		return fmt.Sprintf("%.1f s", *f.Recovery/1000)
	case r.tooShort():
		return "?"
	}
	return "never"
}
