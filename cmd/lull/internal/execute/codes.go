package execute

import (
	"strconv"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/problem"
)

// codes are the ends of a command after which it is repeated.
type codes struct {
	code   [256]bool
	signal bool
}

// Codes up to 125 are the command's own; shells and lull use 126 and 127 for commands that
// cannot be run, and more for signals.
const defaultCodes = "1-125,signal"

func (c codes) has(e attemptError) bool {
	if e.signal > 0 {
		return c.signal
	}
	return e.code >= 0 && e.code < len(c.code) && c.code[e.code]
}

// readCodes reads the flag --transient.
func readCodes(l *problem.List, v cli.Texts) (c codes) {
	if len(v) == 0 {
		v = cli.Texts{defaultCodes}
	}
	for _, part := range v.Split() {
		if part == "signal" {
			c.signal = true
			continue
		}
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 8)
		last, err2 := strconv.ParseUint(to, 10, 8)
		if err1 != nil || err2 != nil || first == 0 || first > last {
			l.Add("--transient", strconv.Quote(part), "an exit code from 1 to 255, a range of them such as 100-109, or signal")
			continue
		}
		for i := first; i <= last; i++ {
			c.code[i] = true
		}
	}
	return c
}
