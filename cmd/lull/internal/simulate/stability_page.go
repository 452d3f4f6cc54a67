package simulate

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// A mapPicture is one map in the page.
type mapPicture struct {
	Title         string
	Width, Height int
	Cells         []mapCell
	Theory        string // points of the line of theory, "" for none
	Loads, Rows   []mapLabel
}

type mapCell struct {
	X, Y, W, H int
	Class      string
	Tip        string
}

type mapLabel struct {
	X, Y int
	Text string
}

const (
	cellWidth, cellHeight = 12, 18
	mapLeft, mapTop       = 60, 18
)

var mapClasses = [...]string{comesBack: "back", onlyHelped: "help", neverBack: "never"}
var mapWords = [...]string{comesBack: "comes back by itself", onlyHelped: "comes back only with help", neverBack: "never comes back"}

// picture draws a map, with the boundary of theory as a line.
func picture(title string, m sim.Stability) mapPicture {
	p := mapPicture{Title: title, Width: mapLeft + cellWidth*len(m.Loads) + 8, Height: mapTop + cellHeight*len(m.Outages) + 36}
	for d, outage := range m.Outages {
		y := mapTop + d*cellHeight
		p.Rows = append(p.Rows, mapLabel{mapLeft - 6, y + 13, inWords(outage)})
		for l, load := range m.Loads {
			s := state(m, l, d)
			p.Cells = append(p.Cells, mapCell{mapLeft + l*cellWidth, y, cellWidth - 1, cellHeight - 1, mapClasses[s],
				fmt.Sprintf("%s calls a second, an outage of %s: %s", loadInWords(load), inWords(outage), mapWords[s])})
		}
		if m.Theory != nil {
			x := mapLeft + m.Theory[d]*cellWidth
			p.Theory += fmt.Sprintf("%d,%d %d,%d ", x, y, x, y+cellHeight)
		}
	}
	for _, l := range []int{0, len(m.Loads)/2 - 1, len(m.Loads) - 1} {
		if l >= 0 {
			p.Loads = append(p.Loads, mapLabel{mapLeft + l*cellWidth + cellWidth/2, p.Height - 6, loadInWords(m.Loads[l])})
		}
	}
	return p
}

var mapPage = template.Must(template.New("map").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
figure{display:inline-block;margin:0 1rem 1rem 0}figcaption{font-size:.9rem}
.facts,.source{color:#57606a;font-size:.9rem}svg text{font-size:11px;fill:#1b1f24}.back{fill:#4c9f70}.help{fill:#e3b341}.never{fill:#b3413b}
.theory{fill:none;stroke:#1b1f24;stroke-width:2}.key span{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 1em}
pre{background:#f4f5f7;padding:1rem;overflow:auto}
</style></head><body>
<header><h1>{{.Title}}</h1>
<p class="facts">{{.Facts}}</p>{{with .Teaches}}
<p>{{.}}</p>{{end}}{{with .Source}}
<p class="source">Source: {{.}}</p>{{end}}</header>
<p>Where it comes back after an outage, by load (across, calls a second{{.Capacity}}) and {{.Down}} (down).</p>
<p class="key"><span style="background:#4c9f70"></span>by itself, within {{.Watch}}
<span style="background:#e3b341"></span>only if all callers stay away for {{.Relief}}
<span style="background:#b3413b"></span>not even so, or it cannot bear that load in peace{{if .Theory}}; the line is the boundary without retries, by queueing theory{{end}}</p>
{{range .Policies}}<h2>{{.Name}}</h2>{{with .Words}}<p>{{.}}</p>{{end}}
{{range .Maps}}<figure><svg role="img" aria-label="{{.Title}}" width="{{.Width}}" height="{{.Height}}" viewBox="0 0 {{.Width}} {{.Height}}">
{{range .Cells}}<rect x="{{.X}}" y="{{.Y}}" width="{{.W}}" height="{{.H}}" class="{{.Class}}"><title>{{.Tip}}</title></rect>
{{end}}{{range .Rows}}<text x="{{.X}}" y="{{.Y}}" text-anchor="end">{{.Text}}</text>{{end}}{{range .Loads}}<text x="{{.X}}" y="{{.Y}}" text-anchor="middle">{{.Text}}</text>{{end}}
<text x="{{.Width}}" y="{{.Height}}" dy="-20" text-anchor="end">calls a second →</text><text x="0" y="10">outage ↓</text>
{{with .Theory}}<polyline class="theory" points="{{.}}"/>{{end}}</svg><figcaption>{{.Title}}</figcaption></figure>
{{end}}{{end}}
<h2>To repeat it</h2><pre>{{.Command}}</pre><pre>{{.File}}</pre>
</body></html>
`))

// facts are those of the page of a run. The runs of a map are of different lengths.
func (m stabilityMap) facts() []string {
	p := report.Page{Scenario: m.scenario, Seed: m.seed, Version: cli.Version()}
	p.Scenario.Horizon = 0
	return append(report.Facts(p, len(m.contenders)), term.Counted(m.runs(), "run"))
}

// writePage writes a page that needs nothing else.
func (m stabilityMap) writePage(w io.Writer, command string) error {
	type policy struct {
		Name, Words string
		Maps        []mapPicture
	}
	var all []policy
	for i, c := range m.contenders {
		p := policy{Name: c.Name, Words: c.Title}
		for n, s := range m.of[i] {
			p.Maps = append(p.Maps, picture(each(m.sizes[n], "1 process", "processes"), s))
		}
		all = append(all, p)
	}
	file, err := scenario.Format(m.scenario)
	if err != nil {
		return err
	}
	title := m.scenario.Name
	if m.scenario.Title != "" {
		title += ": " + m.scenario.Title
	}
	return mapPage.Execute(w, map[string]any{
		"Title": title, "Facts": strings.Join(m.facts(), " · "), "Teaches": m.scenario.Teaches, "Source": m.scenario.Source, "Down": m.rows(), "Capacity": m.capacity(), "Watch": inWords(m.patience()), "Relief": inWords(relief),
		"Theory": m.of[0][0].Theory != nil, "Policies": all, "Command": command, "File": string(file),
	})
}
