package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull/lab/sim"
)

// A window is a time in which something is wrong. It is shaded on every chart.
type window struct {
	From, To time.Duration
	Kind     string // fault or surge
	// Mark is the text above the charts, What the sentence in the list. Of a fault that
	// repeats only the first window has them.
	Mark, What string
	// X, Width, LabelX and Anchor are where it is drawn, Row is the row of the mark.
	X, Width, LabelX, Anchor string
	Row                      int
}

// When returns the time of the window in words.
func (w window) When() string {
	if w.From == w.To {
		return span(w.From)
	}
	return span(w.From) + " to " + span(w.To)
}

// RowY returns the baseline of the mark.
func (w window) RowY() int { return 11 + rowHeight*w.Row }

// rowHeight is the height of a row of marks, in CSS pixels.
const rowHeight = 15

// repeats is the most windows of one fault that are drawn.
const repeats = 200

// windows returns the windows of a scenario in order of their beginning.
func windows(s sim.Scenario) []window {
	horizon := s.Horizon
	if horizon <= 0 {
		return nil
	}
	var ws []window
	for _, service := range s.Services {
		for _, f := range service.Faults {
			at := f.At
			for i := 0; at < horizon && i < repeats; i++ {
				w := window{From: at, To: min(at+f.For, horizon), Kind: "fault"}
				if i == 0 {
					w.Mark, w.What = mark(s, service, f), sentence(service, f)
				}
				ws = append(ws, w)
				if f.Every <= 0 {
					break
				}
				at += f.Every
			}
		}
	}
	for _, fleet := range s.Fleets {
		ws = append(ws, surges(fleet, horizon)...)
	}
	slices.SortStableFunc(ws, func(a, b window) int { return cmp.Compare(a.From, b.From) })
	arrange(ws, horizon)
	return ws
}

// surges returns the times in which a fleet calls more often than at first, and those at
// which all its processes call at once.
func surges(f sim.Fleet, horizon time.Duration) []window {
	a := f.Arrivals
	if a.Kind == sim.AtOnce && a.At < horizon {
		return []window{{
			From: a.At, To: min(a.At+a.Within, horizon), Kind: "surge", Mark: "at once",
			What: fmt.Sprintf("%s: %s calls begin together", f.Name, whole(float64(max(1, f.Processes))*float64(max(1, a.Each)))),
		}}
	}
	var ws []window
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
			if from := a.Ramp[open].At; from < horizon {
				ws = append(ws, window{
					From: from, To: min(p.At, horizon), Kind: "surge", Mark: "load × " + number(peak/normal),
					What: fmt.Sprintf("%s: up to %s times as many calls", f.Name, number(peak/normal)),
				})
			}
			open = -1
		}
	}
	return ws
}

func mark(s sim.Scenario, service sim.Service, f sim.Fault) string {
	if len(s.Services) > 1 {
		return service.Name + ": " + f.Kind.String()
	}
	return f.Kind.String() + " " + span(f.For)
}

func sentence(service sim.Service, f sim.Fault) string {
	share := f.Share
	if share == 0 && f.Kind != sim.Errors {
		share = 0.1
	}
	what := map[sim.FaultKind]string{
		sim.Stall:    "workers stand still, and attempts wait",
		sim.Errors:   "all attempts fail",
		sim.BrownOut: percent(share) + " of the workers are left",
		sim.SlowDown: "work goes on at " + percent(share) + " of its speed",
		sim.Crash:    "everything in hand is lost, and connections are refused",
	}[f.Kind]
	if f.Kind == sim.Errors && share > 0 {
		what = percent(share) + " of the attempts fail"
	}
	if f.Kind == sim.Crash && f.Warmup > 0 {
		what += "; the cache is cold for another " + span(f.Warmup)
	}
	if hosts := max(1, service.Hosts); f.Hosts > 0 && f.Hosts < hosts {
		what += fmt.Sprintf(" (%d of %d hosts)", f.Hosts, hosts)
	}
	if f.Every > 0 {
		what += ", every " + span(f.Every)
	}
	return service.Name + ": " + what
}

// arrange sets where windows and their marks are drawn. There is room for the marks on a
// phone without overlap; if three rows are too few, marks become the numbers of the list.
func arrange(ws []window, horizon time.Duration) {
	for i := range ws {
		w := &ws[i]
		from, to := part(w.From, horizon), part(w.To, horizon)
		w.X, w.Width = place(from), place(to-from)
		w.LabelX, w.Anchor = place(from), "start"
		if from > 0.5 {
			w.LabelX, w.Anchor = place(to), "end"
		}
	}
	if !inRows(ws, horizon) {
		n := 0
		for i := range ws {
			if ws[i].What != "" {
				n++
				ws[i].Mark = strconv.Itoa(n)
			}
		}
		inRows(ws, horizon)
	}
}

func inRows(ws []window, horizon time.Duration) bool {
	const rows, letter, gap = 3, 6.0 / 290, 8.0 / 290 // of a plot 290 pixels wide
	var taken [rows][][2]float64
	fits := true
	for i := range ws {
		w := &ws[i]
		if w.Mark == "" {
			continue
		}
		width := float64(utf8.RuneCountInString(w.Mark)) * letter
		left := part(w.From, horizon)
		if w.Anchor == "end" {
			left = part(w.To, horizon) - width
		}
		if left < 0 || left+width > 1 {
			fits = false
		}
		w.Row = slices.IndexFunc(taken[:], func(row [][2]float64) bool {
			return !slices.ContainsFunc(row, func(t [2]float64) bool { return left < t[1]+gap && t[0] < left+width+gap })
		})
		if w.Row < 0 {
			fits, w.Row = false, 0
		}
		taken[w.Row] = append(taken[w.Row], [2]float64{left, left + width})
	}
	return fits
}

func part(d, of time.Duration) float64 { return d.Seconds() / of.Seconds() }
