package simulate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/lab/sim"
)

// mostRepeats is the largest number of windows of one fault.
const mostRepeats = 200

// windows returns the times of all faults, and those in which a fleet calls more often than at first.
func windows(s sim.Scenario) (all []report.Window) {
	for _, service := range s.Services {
		for _, f := range service.Faults {
			for i, at := 0, f.At; at < s.Horizon && i < mostRepeats; i, at = i+1, at+f.Every {
				w := report.Window{From: at, To: min(at+f.For, s.Horizon), Kind: "fault"}
				if i == 0 {
					w.Mark, w.What = f.Kind.String()+" "+inWords(f.For), service.Name+": "+faultEffect(f, service)
					if len(s.Services) > 1 {
						w.Mark = service.Name + ": " + f.Kind.String()
					}
					if f.Every > 0 {
						w.What += ", every " + inWords(f.Every)
					}
				}
				all = append(all, w)
				if f.Every <= 0 {
					break
				}
			}
		}
	}
	for _, f := range s.Fleets {
		all = append(all, surges(f, s)...)
	}
	return all
}

// pageWindows returns the windows of the page, in the order of their beginning: also when all processes of a fleet call at once.
func pageWindows(s sim.Scenario) []report.Window {
	all := windows(s)
	for _, f := range s.Fleets {
		if a := f.Arrivals; a.Kind == sim.AtOnce && a.At < s.Horizon {
			calls := grouped(float64(max(1, f.Processes)) * float64(max(1, a.Each)))
			all = append(all, report.Window{From: a.At, To: min(a.At+a.Within, s.Horizon), Kind: "surge", Mark: "at once", What: f.Name + ": " + calls + " calls begin together"})
		}
	}
	slices.SortStableFunc(all, func(a, b report.Window) int { return cmp.Compare(a.From, b.From) })
	return all
}

// surges returns the times in which a fleet calls more often than at first.
func surges(f sim.Fleet, s sim.Scenario) (all []report.Window) {
	a := f.Arrivals
	normal, open := 1.0, -1
	peak := 0.0
	for i, p := range a.Ramp {
		if i == 0 && p.At <= 0 {
			normal = p.Factor
		}
		switch {
		case open < 0 && p.Factor > normal:
			open, peak = i, p.Factor
			if i > 0 && a.Ramp[i-1].At < p.At {
				open = i - 1 // it climbs from there
			}
		case open >= 0 && p.Factor > normal:
			peak = max(peak, p.Factor)
		case open >= 0:
			if from := a.Ramp[open].At; from < s.Horizon {
				times := trimmed(peak/normal, 3)
				all = append(all, report.Window{From: from, To: min(p.At, s.Horizon), Kind: "surge", Mark: "load × " + times,
					What: fmt.Sprintf("%s: up to %s times as many calls", f.Name, times)})
			}
			open = -1
		}
	}
	return all
}
