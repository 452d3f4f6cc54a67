package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
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
	if n := strings.Count(text, "<script"); n != 1 {
		t.Errorf("the page has %d scripts", n)
	}
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
	if err := Write(w, full()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
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

// clients differ in how they come through the stall.
var clients = []sim.Contender{
	{Name: "lull", Title: "the zero Policy"},
	{Name: "none", Title: "a single attempt", Policy: lull.Policy{Attempts: 1}},
	{Name: "naive", Title: "three retries at once", Policy: unthrottled(4, budget.Config{Unlimited: true}, breaker.Config{Off: true})},
	{Name: "cautious", Title: "a budget and no breaker", Policy: unthrottled(3, budget.Config{}, breaker.Config{Off: true})},
	{Name: "breaking", Title: "a breaker and no budget", Policy: unthrottled(3, budget.Config{Unlimited: true}, breaker.Config{})},
	{Name: "bold", Title: "a budget of a fifth", Policy: unthrottled(2, budget.Config{Ratio: 0.2}, breaker.Config{})},
}

// unthrottled repeats whatever failed, timeouts too, without a wait.
func unthrottled(attempts int, b budget.Config, c breaker.Config) lull.Policy {
	return lull.Policy{Attempts: attempts, Timeouts: engine.TimeoutsAlways, Backoff: backoff.Schedule{Kind: backoff.Constant}, Budget: b, Breaker: c}
}

// fabricate returns a page of clients in a stall, each with some seeds.
func fabricate(clients []sim.Contender, seeds int) Page {
	s := sim.Scenario{
		Name: "metastable-stall", Title: "A stall of five seconds that never ends",
		Teaches: "A backend at 80 % load stands still for five seconds. When it works again, retries keep its queue so long " +
			"that every attempt times out before its turn: all the work is done for callers that have gone.",
		Source:  "Bronson et al., Metastable Failures in Distributed Systems, HotOS 2021",
		Horizon: 120 * time.Second, Step: 500 * time.Millisecond, Warmup: 5 * time.Second,
		Services: []sim.Service{{
			Name: "backend", Workers: 10, Queue: sim.Queue{Limit: 1000},
			Time:   sim.Distribution{Kind: sim.Exponential, Mean: 100 * time.Millisecond},
			Faults: []sim.Fault{{Kind: sim.Stall, At: 20 * time.Second, For: 5 * time.Second}},
		}},
		Fleets: []sim.Fleet{{Name: "web", Calls: "backend", Processes: 10, Arrivals: sim.Arrivals{Rate: 80}, AttemptTimeout: time.Second}},
	}
	p := Page{
		Scenario: s, Version: "0.3.0", Seed: 7, Seeds: seeds,
		ScenarioYAML: "name: metastable-stall\nhorizon: 120s\n", PoliciesYAML: "dependencies:\n  naive: {attempts: 4}\n",
		Command: "lull simulate metastable-stall --policy lull,none,naive --seed 7 --seeds 5 --report stall.html",
	}
	p.Windows = []Window{{From: 20 * time.Second, To: 25 * time.Second, Kind: "fault", Mark: "stall 5 s", What: "backend: workers stand still"}}
	var err error
	if p.Summaries, err = sim.Compare(context.Background(), s, clients, sim.CompareOptions{Seed: p.Seed, Seeds: seeds}); err != nil {
		panic(err)
	}
	p.Verdict.Columns = []Column{{"back after", "time to recover"}, {"success", "share of calls that succeeded"}}
	for i, s := range p.Summaries {
		p.Verdict.Rows = append(p.Verdict.Rows, Row{s.Contender.Name, []Cell{{Text: "9 s", Best: i == 0}, {Text: "90%"}}})
	}
	return p
}

// fabricatedMaps are of load and the length of the stall.
func fabricatedMaps() *Maps {
	m := &Maps{
		Title: "Recovered or not", About: "The time to recover.", Legend: []MapCell{{Text: "quick", Class: "level-0"}, {Text: "never", Class: "never"}},
		X: Parameter{Name: "load", Values: []string{"0.2", "0.4", "0.6", "0.7", "0.8", "0.9", "0.95"}},
		Y: Parameter{Name: "stall", Values: []string{"200ms", "1s", "5s", "10s", "30s"}},
	}
	for _, c := range clients[:4] {
		g := Grid{Name: c.Name}
		for y := range m.Y.Values {
			var row []MapCell
			for x := range m.X.Values {
				row = append(row, MapCell{Text: fmt.Sprintf("%d s", x*y), More: "90%", Class: fmt.Sprintf("level-%d", x*y%5), Tip: "a cell"})
			}
			g.Cells = append(g.Cells, row)
		}
		m.Grids = append(m.Grids, g)
	}
	return m
}

// dozen are twelve clients.
func dozen() []sim.Contender {
	cs := slices.Repeat(clients, 2)
	for i := range cs[len(clients):] {
		cs[len(clients)+i].Name += fmt.Sprint("-", i)
	}
	return cs
}

func full() Page {
	p := fabricate(clients, 5)
	p.Maps = fabricatedMaps()
	p.OfFleets, p.OfSeeds = p.Verdict, p.Verdict
	return p
}
