package dashboards

import (
	"fmt"
	"html"
	"io"
	"math"
	"sort"
	"strconv"
)

// A Result holds the answers to a panel's queries, over time.
type Result struct {
	Panel Panel
	Lines []Line
}

// A Line is one series: times in seconds since the beginning, and values.
type Line struct {
	Name   string
	Points [][2]float64
}

var colors = []string{"#56a64b", "#f2cc0c", "#e02f44", "#3274d9", "#a352cc", "#ff780a", "#37872d", "#1f60c4", "#8f3bb8", "#c4162a", "#806eb7", "#70dbed"}

// Render draws the results as HTML, about as Grafana would, over the given seconds.
func Render(w io.Writer, all []Result, seconds float64) error {
	d := drawing{w: w, seconds: seconds}
	d.f(`<!doctype html><meta charset="utf-8"><title>lull: retries</title><style>body{background:#111217;color:#ccccdc;font:12px sans-serif;margin:12px;width:1476px}
h1{font-size:15px;font-weight:normal;margin:4px 0 10px}h2{font-size:13px;margin:8px 4px}.g{display:flex;flex-wrap:wrap;gap:8px}.p{background:#181b1f;border:1px solid #2c3235;padding:6px;box-sizing:border-box}
.p b{display:block;margin-bottom:2px}.l span{margin-right:10px;white-space:nowrap;display:inline-block}svg{display:block}text{fill:#9a9aa8;font-size:10px}</style><h1>lull: retries &mdash; the panels of lull.json, as a Prometheus answered them</h1>`)
	i := 0
	for _, row := range Rows() {
		d.f(`<h2>%s</h2><div class="g">`, html.EscapeString(row.Title))
		for range row.Panels {
			if i < len(all) {
				d.panel(all[i])
			}
			i++
		}
		d.f("</div>")
	}
	return d.err
}

type drawing struct {
	w       io.Writer
	seconds float64
	err     error

	// Of the panel.
	width, top float64
}

const (
	height = 150.0
	left   = 44.0
)

func (d *drawing) f(format string, args ...any) {
	if d.err == nil {
		_, d.err = fmt.Fprintf(d.w, format, args...)
	}
}

func (d *drawing) x(t float64) float64 { return left + t/d.seconds*(d.width-left-6) }
func (d *drawing) y(v float64) float64 { return height - 16 - v/d.top*(height-26) }

func (d *drawing) panel(r Result) {
	full := float64(r.Panel.Width)/24*1476 - 8
	d.width = full - 14
	d.f(`<div class="p" style="width:%.0fpx"><b>%s</b><svg width="%.0f" height="%.0f">`, full, html.EscapeString(r.Panel.Title), d.width, height)
	sort.SliceStable(r.Lines, func(i, j int) bool {
		a, errA := strconv.ParseFloat(r.Lines[i].Name, 64)
		b, errB := strconv.ParseFloat(r.Lines[j].Name, 64)
		if errA == nil && errB == nil {
			return a < b
		}
		return false
	})
	switch r.Panel.Kind {
	case "heatmap":
		d.heat(r.Lines)
	case "state-timeline":
		d.states(r.Lines)
	case "bargauge":
		d.bars(r.Lines)
	default:
		d.lines(r)
	}
	if r.Panel.Kind != "bargauge" {
		d.axis()
	}
	d.f(`</svg><div class="l">`)
	if r.Panel.Kind == "timeseries" {
		for i, l := range r.Lines {
			d.f(`<span><i style="color:%s">&#9632;</i> %s</span>`, colors[i%len(colors)], html.EscapeString(l.Name))
		}
	}
	d.f("</div></div>")
}

// axis is that of time.
func (d *drawing) axis() {
	for t := 0.0; t <= d.seconds; t += 5 {
		d.f(`<text x="%.1f" y="%.1f" text-anchor="middle">%.0f s</text>`, d.x(t), height-2, t)
	}
}

func (d *drawing) lines(r Result) {
	at := make(map[float64]float64) // what is below, of those that are stacked
	stacked := make([][][3]float64, len(r.Lines))
	d.top = 0
	for i, l := range r.Lines {
		for _, p := range l.Points {
			if math.IsNaN(p[1]) || math.IsInf(p[1], 0) {
				continue
			}
			low := 0.0
			if r.Panel.Stacked {
				low = at[p[0]]
			}
			at[p[0]] = low + p[1]
			stacked[i] = append(stacked[i], [3]float64{p[0], low, low + p[1]})
			d.top = max(d.top, low+p[1])
		}
	}
	d.top = round(d.top)
	for i := range 5 {
		v := d.top * float64(i) / 4
		d.f(`<line x1="%.0f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#2c3235"/><text x="%.0f" y="%.1f" text-anchor="end">%s</text>`, left, d.width-6, d.y(v), d.y(v), left-4, d.y(v)+3, value(v, r.Panel.Unit))
	}
	for i, points := range stacked {
		color, path := colors[i%len(colors)], ""
		for j, p := range points {
			verb := "L"
			if j == 0 || p[0]-points[j-1][0] > 1 {
				verb = "M"
			}
			path += fmt.Sprintf("%s%.1f %.1f", verb, d.x(p[0]), d.y(p[2]))
		}
		if r.Panel.Stacked && len(points) > 1 {
			area := path
			for j := len(points) - 1; j >= 0; j-- {
				area += fmt.Sprintf("L%.1f %.1f", d.x(points[j][0]), d.y(points[j][1]))
			}
			d.f(`<path d="%sZ" fill="%s" fill-opacity="0.6"/>`, area, color)
		}
		d.f(`<path d="%s" fill="none" stroke="%s" stroke-width="1.3"/>`, path, color)
	}
}

// round is the next of 1, 2, 4, 6, 8 and their tenfold.
func round(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 4, 6, 8, 10} {
		if v <= n*unit {
			return n * unit
		}
	}
	return v
}

func value(v float64, unit string) string {
	switch {
	case unit == "percentunit":
		return fmt.Sprintf("%.3g %%", v*100)
	case unit == "s" && v < 1 && v > 0:
		return fmt.Sprintf("%.3g ms", v*1000)
	case unit == "s":
		return fmt.Sprintf("%.3g s", v)
	case unit == "reqps":
		return fmt.Sprintf("%.3g/s", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// heat is a histogram over time: buckets are cumulative.
func (d *drawing) heat(lines []Line) {
	below := make(map[float64]float64)
	cells := make([]map[float64]float64, len(lines))
	most := 0.0
	for i, l := range lines {
		cells[i] = make(map[float64]float64)
		for _, p := range l.Points {
			cells[i][p[0]] = p[1] - below[p[0]]
			below[p[0]] = p[1]
			most = max(most, cells[i][p[0]])
		}
	}
	h := (height - 20) / float64(max(len(lines), 1))
	for i, l := range lines {
		y := height - 16 - float64(i+1)*h
		if le, err := strconv.ParseFloat(l.Name, 64); err == nil && i%2 == 0 && !math.IsInf(le, 0) {
			d.f(`<text x="%.0f" y="%.1f" text-anchor="end">%s</text>`, left-4, y+4, value(le, "s"))
		}
		for _, p := range l.Points {
			if n := cells[i][p[0]]; n > 0 {
				d.f(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#ff780a" fill-opacity="%.2f"/>`, d.x(p[0]), y, d.x(.25)-d.x(0)+.4, h, .1+.9*math.Sqrt(n/most))
			}
		}
	}
}

func (d *drawing) states(lines []Line) {
	h := (height - 20) / float64(max(len(lines), 1))
	for i, l := range lines {
		y := float64(i) * h
		for _, p := range l.Points {
			d.f(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" fill-opacity="0.8"/>`, d.x(p[0]), y, d.x(.25)-d.x(0)+.4, h-6, colors[int(p[1])%3])
		}
		d.f(`<text x="0" y="%.1f">%s</text>`, y+h/2, html.EscapeString(l.Name))
	}
}

// bars are the latest values.
func (d *drawing) bars(lines []Line) {
	most := 0.0
	last := func(l Line) float64 {
		if len(l.Points) == 0 {
			return 0
		}
		return l.Points[len(l.Points)-1][1]
	}
	for _, l := range lines {
		most = max(most, last(l))
	}
	h := (height - 20) / float64(max(len(lines), 1))
	for i, l := range lines {
		y := float64(i) * h
		d.f(`<rect x="110" y="%.1f" width="%.1f" height="%.1f" fill="%s" fill-opacity="0.7"/><text x="0" y="%.1f">%s</text><text x="%.1f" y="%.1f">%.4g</text>`,
			y, (d.width-170)*last(l)/max(most, 1), max(h-2, 1), colors[i%len(colors)], y+h/2+3, html.EscapeString(l.Name), 114+(d.width-170)*last(l)/max(most, 1), y+h/2+3, last(l))
	}
}
