package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

func (stormScenario) heading(s snapshot) (text string, alarm bool) {
	set := s.setting
	switch p := s.phase(); {
	case p == lastCalls:
		return "waiting for the last calls", false
	case set.Outage == 0:
		return "no outage", false
	case p == before:
		return fmt.Sprintf("outage in %.1f s", (set.OutageAt - s.now).Seconds()), false
	case p == after:
		return fmt.Sprintf("the outage ended %.1f s ago", (s.now - set.outageEnd()).Seconds()), false
	case set.Kind == errors503:
		return "OUTAGE: every backend answers 503 ", true
	}
	return "OUTAGE: every backend is frozen ", true
}

// full returns the attempts per second if every call makes as many as it may.
func (s setting) full() float64 { return float64(s.Attempts) * s.offered() }

func (stormScenario) legend(s snapshot) [2]string {
	return [2]string{
		fmt.Sprintf("load: attempts/s at the backend, %c is %.0f, calls are %.0f, capacity is %d",
			term.Blocks.Highest(), s.setting.full(), s.setting.offered(), s.setting.Capacity),
		"ok:   share of calls that succeeded, of those that ended then",
	}
}

func (stormScenario) status(s snapshot, l laneSnapshot) string {
	const last = time.Second
	succeeded, bad := sum(l.succeeded, s.now-last, s.now), sum(l.bad, s.now-last, s.now)
	seen := total(l.seen)
	return fmt.Sprintf("%-15s%6d attempts for %5d calls (%.2f)   queue %4d   ok now %s",
		l.name, seen, l.calls, ratio(float64(seen), float64(l.calls)), l.queue, percent(succeeded, succeeded+bad))
}

// bars are load and success.
func (stormScenario) bars(s snapshot, l laneSnapshot, from, to time.Duration) (colour string, bars [2]string) {
	succeeded, bad := rateIn(l.succeeded, from, to), rateIn(l.bad, from, to)
	colour, ok := term.Reset, " " // nothing ended: nothing known
	if succeeded+bad > 0 {
		share := succeeded / (succeeded + bad)
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
	return colour, [2]string{term.Blocks.Of(rateIn(l.seen, from, to) / s.setting.full()), ok}
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
		succeeded, bad := sum(l.succeeded, from, to), sum(l.bad, from, to)
		line += fmt.Sprintf(" %5s %5.0f", percent(succeeded, succeeded+bad), ratio(float64(sum(l.seen, from, to)), (to-from).Seconds()))
	}
	return line
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
