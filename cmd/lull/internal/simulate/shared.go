package simulate

import (
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

// Contenders returns the policies of names and files, as --policy has them, for worlds without messages, and the file of a page
// with all of them. Names differ.
func Contenders(asked []string) (all []sim.Contender, file string, err error) {
	found, err := contendersOf(asked, sim.Scenario{})
	for _, c := range found {
		all = append(all, c.Contender)
	}
	if err == nil {
		file, err = outcome{simulation: simulation{world: world{contenders: found}}}.policiesFile()
	}
	return all, file, err
}

// Windows returns the times in which something is wrong, for a page.
func Windows(s sim.Scenario) []report.Window { return pageWindows(s) }

// Axis returns a line of time in columns, with marks where something is wrong, for bars above it.
func Axis(s sim.Scenario, columns int, bars term.Bars) string {
	return faultAxis(s, columns, s.Horizon/time.Duration(columns), bars)
}

// InWords returns a duration with two or three digits and a unit.
func InWords(d time.Duration) string { return inWords(d) }

// PercentOf returns a share as a percentage. It reads 0 or 100 only if the share is exactly nothing or all.
func PercentOf(share float64) string { return percentOf(share) }

// Trimmed returns v with that many digits, but no fewer than its whole part has, and without zeros at the end.
func Trimmed(v float64, digits int) string { return trimmed(v, digits) }

// Data returns every field of v that is not zero as JSON, in snake_case. A duration is in seconds, with a name in _s. NaN is null.
func Data(v any) []byte { return plainData(v) }
