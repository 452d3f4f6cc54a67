// Package report writes a comparison of policies as one page of HTML, to be kept, sent and printed.
//
// The page is a single file that loads nothing: style and script are in it, and a Content-Security-Policy with their hashes
// forbids all else. The charts are SVG, drawn here, so that all of them are there without the script. The path of a line
// holds the figures themselves (the number of the step and the value, to four digits), and a matrix puts them in place. So
// the script needs no second copy of them. If all paths together would be longer than a megabyte, points are left out
// (see thin).
package report

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/lab/sim"
)

// A Page is the content of a report.
type Page struct {
	Scenario sim.Scenario
	// ScenarioYAML and PoliciesYAML are the files as they were run, Command reproduces the page. Empty: left out.
	ScenarioYAML, PoliciesYAML, Command string
	// Version of the program, with or without its name. Empty: left out.
	Version string
	// Summaries, one for each contender, in the order of the page.
	Summaries []sim.Summary
	// Seed is the first, Seeds how many there are.
	Seed  uint64
	Seeds int
	// Measured: the page shows what lull learn has read, with one contender, or beside it runs of lull replay.
	Measured bool
	// Interrupted: the page shows what was computed until the user stopped it.
	Interrupted bool
	// Windows are the times in which something is wrong, in the order of their beginning.
	Windows []Window
	// Notes are sentences for the reader, above everything else.
	Notes []string
	// Verdict is the table at the top, with a row for each of the Summaries. OfFleets and OfSeeds are tables at the end.
	Verdict, OfFleets, OfSeeds Figures
	// Maps of a sweep, or of stability. Nil: there are none.
	Maps *Maps
}

var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/page.js
	pageJS string

	page = template.Must(template.New("page").Parse(pageHTML))
)

const shown = 6

// Write writes the page. Its errors are those of w.
func Write(w io.Writer, p Page) error { return page.Execute(w, newView(p)) }

type view struct {
	Page
	Head, Title string
	CSP         template.HTML
	Style       template.CSS
	Script      template.JS
	Facts       []string
	Contenders  []contender
	Placed      []placedWindow
	Charts      []chart
	Absent      []string
	Numbers     *numbers
	Thinned     bool
	// Step and Warmup in words; Marks is the height of the row of marks, in pixels.
	Step, Warmup string
	Marks        int
	// More is how many contenders are visible at first, zero if all are.
	More int
}

// A contender is one as it is drawn. Shown: it is visible at first.
type contender struct {
	Index        int
	Name, About  string
	Color, Dash  int
	Shown        bool
	Interruption string
}

// colors and dashes of page.css. Their numbers have no common divisor, so that the first thirty contenders differ.
const colors, dashes = 6, 5

func newView(p Page) view {
	v := view{Page: p, Script: template.JS(pageJS)}
	v.Title = cmp.Or(p.Scenario.Title, p.Scenario.Name, "Comparison of policies")
	v.Head = v.Title + " · lull simulate"
	if p.Measured {
		v.Head = v.Title + " · lull " + map[bool]string{true: "learn", false: "replay"}[len(p.Summaries) == 1]
	}
	v.Contenders = contenders(p)
	v.Facts = facts(p)
	v.Placed = arranged(p.Windows, p.Scenario.Horizon)
	v.Charts, v.Absent, v.Thinned = charts(p, v.Contenders)
	if !p.Measured {
		v.Numbers = newNumbers(p, v.Contenders)
	}
	if len(v.Charts) > 0 {
		v.Step = seconds(v.Charts[0].Step)
	}
	if p.Scenario.Warmup > 0 {
		v.Warmup = span(p.Scenario.Warmup)
	}
	if len(v.Contenders) > shown {
		v.More = shown
	}
	for _, w := range v.Placed {
		if w.Mark != "" {
			v.Marks = max(v.Marks, rowHeight*(w.Row+1))
		}
	}

	style := pageCSS + hiding(len(v.Contenders))
	v.Style = template.CSS(style)
	v.CSP = template.HTML(fmt.Sprintf(`<meta http-equiv="Content-Security-Policy" content="`+
		`default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'">`,
		hash(style), hash(pageJS)))
	return v
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func hiding(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "html:has(#show-%d:not(:checked)) .charts .c%d{display:none}\n", i, i)
	}
	return b.String()
}

func contenders(p Page) []contender {
	cs := make([]contender, len(p.Summaries))
	for i, s := range p.Summaries {
		cs[i] = contender{
			Index: i, Name: cmp.Or(s.Contender.Name, fmt.Sprintf("contender %d", i+1)), About: s.Contender.Title,
			Color: i % colors, Dash: i % dashes,
			Shown: i < shown,
		}
		if done := len(s.Results); done < p.Seeds {
			cs[i].Interruption = fmt.Sprintf("%d of %d seeds", done, p.Seeds)
		}
		for _, r := range s.Results {
			if r.Interrupted {
				cs[i].Interruption = "seed " + fmt.Sprint(r.Seed) + " until " + span(r.End)
			}
		}
	}
	return cs
}

func facts(p Page) []string {
	var fs []string
	if p.Scenario.Name != "" {
		fs = append(fs, "scenario "+p.Scenario.Name)
	}
	if n := len(p.Summaries); n > 0 && !p.Measured {
		fs = append(fs, term.Counted(n, "contender"))
	}
	if p.Measured {
		fs = append(fs, span(p.Scenario.Horizon)+" of measurements")
	} else if p.Seeds > 1 {
		fs = append(fs, fmt.Sprintf("seeds %d to %d", p.Seed, p.Seed+uint64(p.Seeds)-1))
	} else {
		fs = append(fs, fmt.Sprintf("seed %d", p.Seed))
	}
	if p.Scenario.Horizon > 0 && !p.Measured {
		fs = append(fs, span(p.Scenario.Horizon)+" of virtual time")
	}
	if p.Version != "" {
		fs = append(fs, "lull "+strings.TrimPrefix(p.Version, "lull "))
	}
	return fs
}

// Figures are a table with a row for each contender, or for each of its fleets or seeds.
type Figures struct {
	Columns []Column
	Rows    []Row
}

// A Column has a heading, and a sentence about it. Without the sentence it is explained by another column.
type Column struct{ Name, About string }

// A Row has a cell for each column.
type Row struct {
	Name  string // of the contender
	Cells []Cell
}

// A Cell is a figure. Best: no other figure of its column is certainly better.
type Cell struct {
	Text string
	Best bool
}

// Maps have a map for each contender, with a cell for each value of a parameter, or for each pair of values of two.
type Maps struct {
	Title, About string
	Legend       []MapCell // texts and classes
	X, Y         Parameter // X is across, Y is down. Without values of Y there is only X.
	Grids        []Grid
}

// A Parameter has a name and the values of its axis, as they were typed.
type Parameter struct {
	Name   string
	Values []string
}

// A Grid is the map of one contender: Cells[y][x].
type Grid struct {
	Name  string
	Cells [][]MapCell
}

// A MapCell has More in small letters below its Text. Class gives its colour, and Tip is shown under the pointer.
type MapCell struct{ Text, More, Class, Tip string }

// A Window is a time in which something is wrong. It is shaded on every chart.
type Window struct {
	From, To time.Duration
	Kind     string // fault or surge
	// Mark is above the charts, What in the list. A fault that repeats has them at its first window.
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
	return choice.Either(w.From == w.To, span(w.From), span(w.From)+" to "+span(w.To))
}

// RowY returns the baseline of the mark.
func (w placedWindow) RowY() int { return 11 + rowHeight*w.Row }

const rowHeight = 15

// arranged places the windows. Marks do not overlap on a phone; if three rows are too few, they are numbers of the list.
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
		left := choice.Either(w.Anchor == "end", part(w.To, horizon)-width, part(w.From, horizon))
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
