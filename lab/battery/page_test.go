package battery

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// docs/defaults.md has tables that a run of this test with -update writes.
func TestPage(t *testing.T) {
	t.Run("prices", func(t *testing.T) { tableOfPage(t, prices()) })
	t.Run("figures", func(t *testing.T) { tableOfPage(t, figures(t)) })
}

// tableOfPage compares the lines below the comment that names the test, up to an empty one, and rewrites them with -update.
func tableOfPage(t *testing.T, lines []string) {
	const path = "../../docs/defaults.md"
	page := strings.Split(strings.ReplaceAll(string(must.Have(os.ReadFile(path))), "\r\n", "\n"), "\n")
	from := 2 + slices.IndexFunc(page, func(l string) bool { return strings.HasPrefix(l, "<!-- ") && strings.Contains(l, t.Name()+" ") })
	if from == 1 {
		t.Fatalf("%s has no comment with %s", path, t.Name())
	}
	to := from + slices.Index(page[from:], "")
	golden.File(t, path, strings.Join(slices.Replace(page, from, to, lines...), "\n"))
}

// prices are a table of knownShortfalls: for each price the demands that are not met, and where.
func prices() []string {
	worlds := map[string]bool{}
	var why []string
	of := map[known][]string{}
	for _, k := range knownShortfalls {
		worlds[k.world] = true
		if !slices.Contains(why, k.why) {
			why = append(why, k.why)
		}
		row := known{demand: k.demand, why: k.why}
		of[row] = append(of[row], "`"+k.world+"`")
	}
	lines := []string{
		fmt.Sprintf("| price | demand | worlds, %d of the %d that tests fly |", len(worlds), len(some)+len(slow)+len(large)), "|---|---|---|",
	}
	for _, price := range why {
		cell := price
		for _, d := range []Demand{Success, Back, Held, Undominated, Floor, Attempts, Within} {
			if names := of[known{demand: d, why: price}]; names != nil {
				lines = append(lines, fmt.Sprintf("| %s | %s | %s |", cell, d, strings.Join(names, ", ")))
				cell = ""
			}
		}
	}
	return lines
}

// figures are a table of what the zero Policy gives and takes in some worlds.
func figures(t *testing.T) []string {
	shown := []struct{ title, world string }{
		{"20 % of attempts fail at once", "peace-err0.2-r50-p10"},
		{"30 % of attempts fail at once", "peace-err0.3-r50-p10"},
		{"30 %, and successes take 5 s", "slowok5s-err0.3-bursts4sper60-p10"},
		{"1 % of requests are lost; 8 calls/s in each process", "peace-loss0.01-r800-p100"},
		{"the same, a call every 2 s", "peace-loss0.01-r50-p100"},
		{"one host of three hangs; 3 calls/s", "sick1of3-p100-at500ms"},
		{"a stall of 10 s leaves a queue", "w10-p100-stall10"},
		{"a hang of 300 s leaves none; a call every 2 s", "bh300-at10s-p100-r50-cancel"},
		{"the same, a call every 20 s", "bh300-at10s-p100-r5-cancel"},
	}
	p := Plan{Judged: sim.Contender{Name: "lull", Policy: lull.Policy{}}, Seeds: 3}
	for _, s := range shown {
		w := worldsNamed(t, Quick, s.world)[0]
		w.Peace = nil
		p.Worlds = append(p.Worlds, w)
	}
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\t\tsucceed\tnone\tback\tnone\theld")
	for i, o := range must.Have(Fly(context.Background(), p)) {
		ours, none := o.Judged(), o.Of(None)
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f×\n", shown[i].title, shown[i].world,
			succeed(ours), succeed(none), back(o.World, ours), back(o.World, none), ours.Held()/none.Held())
	}
	out.Flush()
	return slices.Concat([]string{"```text"}, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n"), []string{"```"})
}

func succeed(f *Flown) string {
	mean, _ := share(f.Runs)
	return fmt.Sprintf("%.2f%%", 100*mean)
}

// back returns after how many seconds calls succeed again, or nothing where everything repeats itself.
func back(w World, f *Flown) string {
	if w.Stationary {
		return ""
	}
	text, _, _ := strings.Cut(BackIn(f.Runs), " ")
	return text + " s"
}
