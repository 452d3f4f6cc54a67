package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

func written(t testing.TB, p Page) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(Write(&b, p))
	return b.Bytes()
}

// hostile is a name that tries to break out of the page.
const hostile = `</script></style></title></pre>"'><script>window.owned=1</script><img src=x onerror="window.owned=2"> {{.}} ${owned=3} &amp;`

// deface gives everything that name.
func deface(p *Page) {
	s := &p.Scenario
	s.Name, s.Title, s.Teaches, s.Source = hostile, hostile, hostile, hostile
	for i := range s.Services {
		s.Services[i].Name = hostile
	}
	for i := range s.Fleets {
		s.Fleets[i].Name = hostile
	}
	p.ScenarioYAML, p.PoliciesYAML, p.Command, p.Version = hostile, hostile, hostile, hostile
	p.Notes = []string{hostile}
	p.Windows[0].Mark, p.Windows[0].What = hostile, hostile
	for i := range p.Summaries {
		c := &p.Summaries[i]
		c.Contender.Name, c.Contender.Title = hostile, hostile
		for k := range c.Results {
			c.Results[k].Contender = hostile
			c.Results[k].Series.Refused[hostile] = c.Results[k].Series.Calls
		}
	}
	for _, f := range []*Figures{&p.Verdict, &p.OfFleets, &p.OfSeeds} {
		f.Columns[0] = Column{hostile, hostile}
		f.Rows[0] = Row{hostile, []Cell{{Text: hostile}}}
	}
	if m := p.Maps; m != nil {
		m.Title, m.About, m.X.Name, m.Y.Name = hostile, hostile, hostile, hostile
		m.X.Values[0], m.Y.Values[0] = hostile, hostile
		m.Grids[0].Name = hostile
		m.Grids[0].Cells[0][0] = MapCell{hostile, hostile, hostile, hostile}
	}
}

func TestTextIsEscaped(t *testing.T) {
	p := full()
	deface(&p)
	text := string(written(t, p))
	for _, bad := range []string{"<script>window", "<img", `onerror="window`, "</pre>\""} {
		if strings.Contains(text, bad) {
			t.Errorf("the page contains %s", bad)
		}
	}
	if strings.Contains(text, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
	check.Equal(t, strings.Count(text, "<script"), 1, "scripts")
}

func TestNothingFromOutside(t *testing.T) {
	text := string(written(t, full()))
	if urls := regexp.MustCompile(`(?i)(src|href|url|@import|action)\s*[=(]\s*["']?[^d"' ][^ >]*`).FindAllString(text, -1); len(urls) > 0 {
		t.Errorf("the page refers to %q", urls)
	}
	if !strings.Contains(text, "default-src 'none'") || strings.Contains(text, "unsafe") {
		t.Error("the page's policy does not forbid everything")
	}
	if strings.Index(text, "Content-Security-Policy") > strings.Index(text, "<style>") {
		t.Error("the policy comes after what it should rule")
	}
}

func TestReportNamesItsSubject(t *testing.T) {
	p := full()
	text := string(written(t, p))
	for _, want := range []string{
		p.Scenario.Title, "HotOS 2021", "scenario metastable-stall", "6 contenders", "seeds 7 to 11", "lull 0.3.0",
		`<th scope="col">back after</th>`, `<th scope="row">`, "<dt>success</dt><dd>share of calls that succeeded</dd>", `class="best"`, `title="a cell"`, "20\u00a0s to 25\u00a0s", "backend: workers stand still",
		"warm-up of 5\u00a0s", "middle one of 5 seeds", "horizon: 120s", "naive: {attempts: 4", "--seed 7 --seeds 5",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestSamePageTwice(t *testing.T) {
	if !bytes.Equal(written(t, full()), written(t, full())) {
		t.Error("the same results give two different pages")
	}
}

// TestPartialPages are of interrupted runs, and of unusual scenarios.
func TestPartialPages(t *testing.T) {
	stopped := fabricate(clients, 2)
	stopped.Interrupted = true
	stopped.Summaries[0].Results = nil
	r := &stopped.Summaries[1].Results[1]
	r.Interrupted, r.End = true, 30*time.Second
	r.Series.First, r.Series.Good, r.Series.P99 = r.Series.First[:60], r.Series.Good[:60], r.Series.P99[:60]
	bare := fabricate(clients[:1], 1)
	bare.Summaries[0].Results[0].Series = sim.Series{}
	zero := Page{Summaries: []sim.Summary{{Results: []sim.Result{{}}}}, Verdict: Figures{Rows: []Row{{}}}}
	for name, c := range map[string]struct {
		page      Page
		with, not string
	}{
		"nothing":       {Page{}, "Comparison of policies", "Through time"},
		"all zero":      {zero, "contender 1", "NaN"},
		"stopped":       {stopped, "<strong>Interrupted.</strong>", "NaN"},
		"no series":     {bare, "Verdict", "Through time"},
		"only maps":     {Page{Maps: fabricatedMaps()}, "Recovered or not", "Verdict"},
		"one parameter": {Page{Maps: &Maps{X: Parameter{"load", []string{"0.5"}}, Grids: []Grid{{"lull", [][]MapCell{{{Text: "1 s"}}}}}}}, "load&nbsp;→", "↓"},
	} {
		text := string(written(t, c.page))
		text = text[:strings.Index(text, "<script>")]
		if !strings.Contains(text, c.with) || strings.Contains(text, c.not) {
			t.Errorf("%s: the page lacks %q or has %q", name, c.with, c.not)
		}
		if strings.Contains(text, "Inf") || strings.Contains(text, "ZgotmplZ") {
			t.Errorf("%s: the page has a figure that is none", name)
		}
	}
	if text := string(written(t, stopped)); !strings.Contains(text, "lull: 0 of 2 seeds") || !strings.Contains(text, "none: seed 8 until 30\u00a0s") {
		t.Error("the page does not say how far the runs came")
	}
}

func TestErrorsOfTheWriter(t *testing.T) {
	closed, w := io.Pipe()
	closed.Close()
	check.Is(t, Write(w, full()), io.ErrClosedPipe, "Write to a closed pipe")
}

// The size is that of 12 contenders and 16 charts, the most that a page is made for.
func TestSize(t *testing.T) {
	for _, c := range []struct{ contenders, seeds, times int }{{12, 1, 1}, {12, 5, 3}, {12, 5, 20}, {6, 5, 5}} {
		p := fabricate(dozen()[:c.contenders], c.seeds)
		for i := range p.Summaries {
			for k := range p.Summaries[i].Results {
				stretch(&p.Summaries[i].Results[k].Series, c.times)
			}
		}
		p.Scenario.Step /= time.Duration(c.times)
		p.Maps = fabricatedMaps()
		n := len(written(t, p))
		if n > 3<<19 {
			t.Errorf("%+v: %d bytes", c, n)
		}
		t.Logf("%+v: %d kB", c, n>>10)
	}
}

// stretch makes a series longer, at the same horizon.
func stretch(s *sim.Series, times int) {
	longer := func(v []float64) []float64 {
		var w []float64
		for i, a := range v {
			for k := range times {
				w = append(w, a*(1+0.01*float64((i*7+k*13)%11)))
			}
		}
		return w
	}
	for _, v := range []*[]float64{&s.Calls, &s.First, &s.Retries, &s.Goodput, &s.Good, &s.Failed, &s.Wasted, &s.Queue, &s.Busy, &s.Open} {
		*v = longer(*v)
	}
	for i, share := range s.Good {
		s.Good[i] = min(1, share)
	}
	for reason, v := range s.Refused {
		s.Refused[reason] = longer(v)
	}
	for _, v := range []*[]time.Duration{&s.P50, &s.P99} {
		var w []time.Duration
		for _, a := range *v {
			for k := range times {
				w = append(w, a+a*time.Duration(k%5)/50)
			}
		}
		*v = w
	}
	s.Step /= time.Duration(times)
}

func ExampleWrite() {
	page := Page{
		Scenario: sim.Scenario{Name: "blip", Title: "A blip of 200 ms"},
		Command:  "lull simulate blip --report blip.html",
		Summaries: []sim.Summary{{
			Contender: sim.Contender{Name: "lull"},
			Results:   []sim.Result{{Recovery: sim.Recovery{Measured: true, Recovered: true, Time: 3 * time.Second}}},
			Recovery:  sim.Estimate{Mean: 3}, Recovered: 1,
		}},
	}
	file, err := os.CreateTemp("", "*.html")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := Write(file, page); err != nil {
		fmt.Println(err)
		return
	}
	text, _ := os.ReadFile(file.Name())
	fmt.Println(strings.Contains(string(text), "<title>A blip of 200 ms · lull simulate</title>"))
	// Output: true
}

// TestMarksDoNotMeet: the marks of a row do not touch, and become numbers if there are too
// many for the rows.
func TestMarksDoNotMeet(t *testing.T) {
	var ws []Window
	add := func(seconds ...time.Duration) []placedWindow {
		for _, at := range seconds {
			ws = append(ws, Window{From: at * time.Second, To: (at + 1) * time.Second, Mark: "stall 1 s", What: "workers stand still"})
		}
		return arranged(ws, time.Minute)
	}
	if p := add(10, 11, 50); p[0].Row == p[1].Row || p[2].Row != 0 || p[2].Anchor != "end" || p[0].Mark != "stall 1 s" {
		t.Errorf("three marks: %+v", p)
	}
	for i, w := range add(12, 13, 14, 15, 16) {
		check.Equal(t, w.Mark, fmt.Sprint(i+1), "mark %d", i)
	}
}
