// Command picture draws the picture of the README: an outage with lull and without. It flies the
// policies through lull simulate's scenario metastable-stall and prints an SVG.
//
//	go run ./lab/picture > docs/outage.svg
package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

func main() {
	must.Main("picture", 1, func() error {
		picture, err := draw(context.Background())
		fmt.Print(picture)
		return err
	})
}

// Of the scenario.
const (
	stallAt, stallFor = time.Minute, 10 * time.Second
	from, to          = 50 * time.Second, 130 * time.Second // what is drawn
)

// lines are the policies, in the order in which they are drawn: the last one is on top.
var lines = []struct{ preset, title, color, width string }{
	{"full-jitter", "3 retries, full jitter", "#d9480f", "1.75"},
	{"none", "no retries", "#868e96", "1.75"},
	{"lull", "lull", "#1864ab", "3"},
}

// Of the picture, in pixels.
const (
	width, left, right   = 830, 52, 640 // right: where the key begins
	height, panel        = 414, 120     // panel: the height of each
	firstTop, secondTop  = 68, 236
	fonts                = "-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
	dark, grey, hair     = "#212529", "#495057", "#dee2e6"
	shade                = "#f1f3f5"
	mostGood, mostLoad   = 1000.0, 4000.0 // the highest of each axis
	goodTitle, loadTitle = "Calls that succeed, per second", "Attempts that the service receives, per second"
)

func draw(ctx context.Context) (_ string, err error) {
	defer must.Catch(&err)
	outage := must.Have(scenario.Find("metastable-stall"))
	var results []sim.Result
	for _, l := range lines {
		results = append(results, must.Have(sim.Run(ctx, outage, must.Have(battery.Preset(l.preset)), sim.Options{Seed: 1})))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="%s" font-size="13" role="img" aria-labelledby="title desc">`+"\n", width, height, fonts)
	b.WriteString("<title id=\"title\">An outage with lull and without</title>\n")
	fmt.Fprintf(&b, "<desc id=\"desc\">A service stalls for %.0f s.", stallFor.Seconds())
	for i, l := range lines {
		fmt.Fprintf(&b, " With %s: %s.", l.title, back(results[i]))
	}
	b.WriteString("</desc>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="6" fill="#ffffff"/>`+"\n", width, height)
	text(&b, left, 26, dark, `font-size="15" font-weight="600"`, fmt.Sprintf("A service that can answer 1,000 requests a second gets 800, and stalls for %.0f s", stallFor.Seconds()))
	good := func(s sim.Series) []float64 { return s.Goodput }
	load := func(s sim.Series) []float64 {
		sum := make([]float64, len(s.First))
		for i := range sum {
			sum[i] = s.First[i] + s.Retries[i]
		}
		return sum
	}
	drawPanel(&b, firstTop, goodTitle, mostGood, results, good)
	drawPanel(&b, secondTop, loadTitle, mostLoad, results, load)
	for i := range lines { // the key, the most important first
		l, r := lines[len(lines)-1-i], results[len(lines)-1-i]
		y := firstTop + 20 + 46*i
		fmt.Fprintf(&b, `<path d="M%d %dh20" stroke="%s" stroke-width="%s"/>`+"\n", right+16, y-4, l.color, l.width)
		text(&b, right+42, y, l.color, `font-weight="600"`, l.title)
		text(&b, right+42, y+17, grey, "", back(r))
	}
	text(&b, left, height-14, grey, `font-size="12"`, "Across: seconds. 100 processes, timeouts of 1 s; the run of lull simulate, drawn by go run ./lab/picture.")
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// back says when the service was back to normal.
func back(r sim.Result) string {
	if !r.Recovery.Recovered {
		return "never comes back"
	}
	return fmt.Sprintf("back after %.0f s", r.Recovery.Time.Seconds())
}

func drawPanel(b *strings.Builder, top int, title string, most float64, results []sim.Result, of func(sim.Series) []float64) {
	text(b, left, top-10, dark, `font-weight="600"`, title)
	fmt.Fprintf(b, `<rect x="%s" y="%d" width="%s" height="%d" fill="%s"/>`+"\n", coordinate(across(stallAt)), top, coordinate(across(stallAt+stallFor)-across(stallAt)), panel, shade)
	text(b, int(across(stallAt))+6, top+14, grey, `font-size="12"`, "stalled")
	for _, share := range []float64{0, 0.5, 1} {
		y := float64(top) + panel*(1-share)
		fmt.Fprintf(b, `<path d="M%d %sH%d" stroke="%s"/>`+"\n", left, coordinate(y), right, hair)
		text(b, left-8, int(y)+4, grey, `font-size="12" text-anchor="end"`, thousands(most*share))
	}
	for at := from; at <= to; at += 10 * time.Second {
		text(b, int(across(at)), top+panel+16, grey, `font-size="12" text-anchor="middle"`, fmt.Sprintf("%.0f", at.Seconds()))
	}
	for i, l := range lines {
		fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round" d="%s"/>`+"\n", l.color, l.width, path(results[i].Series.Step, of(results[i].Series), top, most))
	}
}

// path draws values, each in the middle of its step.
func path(step time.Duration, values []float64, top int, most float64) string {
	var d strings.Builder
	for i, v := range values {
		at := time.Duration(i)*step + step/2
		if at < from || at > to {
			continue
		}
		letter := "L"
		if d.Len() == 0 {
			letter = "M"
		}
		fmt.Fprintf(&d, "%s%s %s", letter, coordinate(across(at)), coordinate(float64(top)+panel*(1-min(v/most, 1))))
	}
	return d.String()
}

// across is where a time is.
func across(at time.Duration) float64 {
	return left + float64(right-left)*float64(at-from)/float64(to-from)
}

func coordinate(v float64) string { return fmt.Sprintf("%g", math.Round(v*10)/10) }

func thousands(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%d,%03d", int(v)/1000, int(v)%1000)
	}
	return fmt.Sprint(int(v))
}

func text(b *strings.Builder, x, y int, color, attributes, s string) {
	if attributes != "" {
		attributes = " " + attributes
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s"%s>%s</text>`+"\n", x, y, color, attributes, s)
}
