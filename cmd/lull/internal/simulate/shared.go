package simulate

import (
	"time"

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

// Axis returns a line of time in columns, with marks where something is wrong, for bars above it.
func Axis(s sim.Scenario, columns int, bars term.Bars) string {
	return faultAxis(s, columns, s.Horizon/time.Duration(columns), bars)
}

// The words and numbers of lull simulate for other commands.
var (
	InWords, PercentOf, Trimmed = inWords, percentOf, trimmed
	Windows                     = pageWindows // in which something is wrong
	Data                        = plainData   // every field that is not zero as JSON
)
