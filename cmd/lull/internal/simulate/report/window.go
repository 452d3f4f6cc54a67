package report

import (
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// A Window is a time in which something is wrong. It is shaded on every chart.
type Window struct {
	From, To time.Duration
	Kind     string // fault or surge
	// Mark is the text above the charts, What the sentence in the list. Of a fault that
	// repeats only the first window has them.
	Mark, What string
}

// A placedWindow is a window with the places at which it is drawn. Row is the row of the mark.
type placedWindow struct {
	Window
	X, Width, LabelX, Anchor string
	Row                      int
}

// When returns the time of the window in words.
func (w Window) When() string {
	if w.From == w.To {
		return span(w.From)
	}
	return span(w.From) + " to " + span(w.To)
}

// RowY returns the baseline of the mark.
func (w placedWindow) RowY() int { return 11 + rowHeight*w.Row }

// rowHeight is the height of a row of marks, in CSS pixels.
const rowHeight = 15

// arranged returns the windows with their places. There is room for the marks on a
// phone without overlap; if three rows are too few, marks become the numbers of the list.
func arranged(all []Window, horizon time.Duration) []placedWindow {
	ws := make([]placedWindow, len(all))
	for i, w := range all {
		from, to := part(w.From, horizon), part(w.To, horizon)
		ws[i] = placedWindow{Window: w, X: place(from), Width: place(to - from), LabelX: place(from), Anchor: "start"}
		if from > 0.5 {
			ws[i].LabelX, ws[i].Anchor = place(to), "end"
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
	return ws
}

func inRows(ws []placedWindow, horizon time.Duration) bool {
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
