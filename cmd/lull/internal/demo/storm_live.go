package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

func (stormScenario) heading(s setting, p phase, seconds float64) string {
	switch p {
	case before:
		return fmt.Sprintf("outage in %.1f s", seconds)
	case during:
		if s.Kind == errors503 {
			return "OUTAGE: every backend answers 503 "
		}
		return "OUTAGE: every backend is frozen "
	case after:
		return fmt.Sprintf("the outage ended %.1f s ago", seconds)
	}
	return "no outage"
}

// full returns the attempts per second if every call makes as many as it may.
func (s setting) maxRate() float64 { return float64(s.Attempts) * s.offered() }

func (stormScenario) legend(s snapshot) [2]string {
	return [2]string{
		fmt.Sprintf("load: attempts/s at the backend, %c is %.0f, calls are %.0f, capacity is %d",
			term.Blocks.Highest(), s.setting.maxRate(), s.setting.offered(), s.setting.Capacity),
		"ok:   share of calls that succeeded, of those that ended then",
	}
}

func (stormScenario) status(s snapshot, l laneSnapshot) string {
	calls, attempts := total(l.counts[begun]), total(l.counts[seen])
	return fmt.Sprintf("%-15s%6d attempts for %5d calls (%.2f)   queue %4d   ok now %s",
		l.name, attempts, calls, ratio(float64(attempts), float64(calls)), l.queue, l.okBetween(s.now-time.Second, s.now))
}

func (stormScenario) bars(s snapshot, l laneSnapshot, from, to time.Duration) (colour string, bars [2]string) {
	good, failed := rateIn(l.counts[succeeded], from, to), rateIn(l.counts[bad], from, to)
	colour, ok := term.Reset, " " // nothing ended: nothing known
	if good+failed > 0 {
		share := good / (good + failed)
		ok = term.Blocks.Of(share)
		switch {
		case share >= recoveryShare:
			colour = term.Green
		case share >= 0.5:
			colour = term.Yellow
		default:
			colour = term.Red
		}
	}
	return colour, [2]string{term.Blocks.Of(rateIn(l.counts[seen], from, to) / s.setting.maxRate()), ok}
}

func (stormScenario) plainHead(s snapshot) string {
	head := "Each second: calls that succeeded, of those that ended; attempts a second at the backend.\n" + fmt.Sprintf("%-7s", "")
	for _, l := range s.lanes {
		short := strings.TrimSuffix(strings.TrimSuffix(l.name, " interval"), " jitter") // fits the column
		head += fmt.Sprintf(" %11s", short)
	}
	return head + "\n"
}

func (stormScenario) plainLine(s snapshot, from, to time.Duration) (line string) {
	for _, l := range s.lanes {
		line += fmt.Sprintf(" %5s %5.0f", l.okBetween(from, to), ratio(float64(sum(l.counts[seen], from, to)), (to-from).Seconds()))
	}
	return line
}

// okBetween returns the share of calls that succeeded, of those that ended between two times.
func (l laneSnapshot) okBetween(from, to time.Duration) string {
	good := sum(l.counts[succeeded], from, to)
	return percent(good, good+sum(l.counts[bad], from, to))
}

// percent never rounds to 100 or 0 what is not all or nothing.
func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	n := (100*part + whole/2) / whole
	switch {
	case part == whole:
		n = 100
	case part > 0:
		n = min(max(n, 1), 99)
	}
	return fmt.Sprintf("%d%%", n)
}
