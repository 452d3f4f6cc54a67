package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/config/syntax"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// answer is the first sentence.
func (t *task) answer() string {
	changes := 0
	for _, r := range t.proposals {
		changes += choice.Either(r.Kept, 1, 0)
	}
	switch {
	case changes > 0:
		return choice.Either(t.asGood, "The zero policy is as good as the one in use. From there, change ", "Change ") + term.Counted(changes, "field") + "."
	case t.asGood:
		return "The zero policy is as good as the one in use: keep the zero policy."
	}
	return "Keep the " + choice.Either(t.Policy == "", "zero policy", "policy in use") + ": nothing that the data supports is better in this world and worse in none."
}

// head says what a proposal is about.
func (r *proposal) head() string {
	text := r.Field + ": " + r.InUse
	if r.Value != "" {
		text += ", proposed " + r.Value
	}
	if r.Allowed != "" {
		text += "; the data allows " + r.Allowed
	}
	return text
}

// reasons are what became of a proposal, and why.
func (r *proposal) reasons() []string {
	all := []string{r.Verdict + "."}
	if r.Value != "" || r.Allowed != "" {
		all = append(all, "Data: "+r.Data+".")
	}
	if r.Value != "" {
		all = append(all, "Formula: "+r.Formula+".", "Price: "+r.Price+".")
	}
	return all
}

// print prints the answer with its reasons.
func (t *task) print(out io.Writer, rows [][]string) {
	var b strings.Builder
	for _, text := range slices.Concat([]string{t.answer()}, t.notes) {
		b.WriteString(term.Fill("", text))
	}
	b.WriteByte('\n')
	for i := range t.proposals {
		b.WriteString(term.Fill("", t.proposals[i].head()))
		for _, text := range t.proposals[i].reasons() {
			b.WriteString(term.Fill("  ", text))
		}
	}
	b.WriteByte('\n')
	term.Table(&b, rows, 100)
	b.WriteString(term.Fill("", t.legend()))
	fmt.Fprint(out, b.String()+t.diff())
}

// contenders are the policies of the table, each once.
func (t *task) contenders() []sim.Contender {
	all := []sim.Contender{{Name: "zero"}}
	if t.present != (lull.Policy{}) {
		all = append(all, sim.Contender{Name: "in use", Policy: t.present})
	}
	if t.tuned != t.base {
		all = append(all, sim.Contender{Name: "tuned", Policy: t.tuned})
	}
	return all
}

// table returns the figures of all contenders in the worlds around the values of the file, below their names. A star
// is beside policies that no other dominates.
func (t *task) table(ctx context.Context) ([][]string, error) {
	from := firstSeeds[choice.Either(t.tuned != t.base, 1, 0)]
	rows := [][]string{{"world", "policy", "success", "back", "calls held", "attempts/call"}}
	for w, world := range t.bench.Worlds[:t.shown] {
		name := world.Name
		for _, c := range t.contenders() {
			runs, err := t.bench.Fly(ctx, c.Policy, w, from)
			mark := " *"
			for _, other := range t.contenders() {
				differences, failed := t.bench.Differences(ctx, other.Policy, c.Policy, w, from)
				if slices.ContainsFunc(differences, battery.Difference.Better) && !slices.ContainsFunc(differences, battery.Difference.Worse) {
					mark = ""
				}
				err = cmp.Or(err, failed)
			}
			if err != nil {
				return nil, err
			}
			back := choice.Either(world.Stationary, "–", battery.BackIn(runs))
			f := battery.Flown{Runs: runs}
			rows = append(rows, []string{name, c.Name + mark, battery.Percent(runs), back, fmt.Sprintf("%.3g", f.Held()), fmt.Sprintf("%.3f", f.Amplification())})
			name = ""
		}
	}
	return rows, nil
}

// legend explains the table.
func (t *task) legend() string {
	return fmt.Sprintf("Success%s and attempts are of all calls, back is after the fault, held is how many calls were in progress on average; means of %d seeds. * no other policy is better in one of them and worse in none. Not shown: %s with draws of what is not known exactly.",
		choice.Either(t.goals.slo > 0, fmt.Sprintf(" within %v", t.goals.slo), ""), t.bench.Seeds, term.Counted(len(t.bench.Worlds)-t.shown, "world"))
}

// yaml is the part of a policy file that a valid policy is.
func (t *task) yaml(p lull.Policy) string {
	return string(must.Have(config.FormatPolicies([]config.NamedPolicy{{Name: t.file.Dependencies[t.dependency].Name, Policy: p}})))
}

// diff is what changes in the policy file, by lines.
func (t *task) diff() (text string) {
	before, after := strings.SplitAfter(t.yaml(t.present), "\n"), strings.SplitAfter(t.yaml(t.tuned), "\n")
	without := func(lines, others []string, mark string) {
		for _, line := range lines {
			if !slices.Contains(others, line) {
				text += mark + line
			}
		}
	}
	without(before, after, "- ")
	without(after, before, "+ ")
	return choice.Either(text == "", "", "\n") + text
}

// policyFile returns the file with the tuned policy. Each reason stands above the line of its field.
func (t *task) policyFile() ([]byte, error) {
	file := *t.file
	file.Dependencies = slices.Clone(file.Dependencies)
	own := &file.Dependencies[t.dependency]
	own.Policy = t.tuned
	if t.asGood {
		own.Preset = ""
	}
	text, err := config.FormatPolicyFile(&file)
	if err != nil {
		return nil, err
	}
	nodes := must.Have(syntax.ParseOwn("", text))
	remark := func(n *tree.Node, text string) { n.Comment += term.Fill("", text) }
	remark(nodes[0].Members[0].Value, fmt.Sprintf("%s By lull tune, from %s.", t.answer(), t.World))
	for _, r := range t.proposals {
		if r.Kept {
			key, _, _ := strings.Cut(r.Field, ".")
			of := nodes[0].Get("dependencies").Get(own.Name)
			of = cmp.Or(of.Get(key), of) // the defaults of the file may have it
			remark(of, r.Field+" was "+r.InUse+", and "+strings.Join(r.reasons(), " "))
		}
	}
	return syntax.YAML(100, nodes...)
}

// check prints the interval of each field, and fails if the policy in use sets a value outside.
func (t *task) check(out io.Writer) (err error) {
	for _, r := range propose(&t.facts, t.present, t.goals) {
		switch r.Value = ""; {
		case r.Outside:
			err = errors.New("the policy has values outside of the intervals that the world allows")
			fmt.Fprintf(out, "%s: %s is %s: want %s\n%s", t.Policy, r.Field, r.InUse, r.Allowed, term.Fill("  ", "Data: "+r.Data+"."))
		case r.Allowed != "":
			fmt.Fprintln(out, r.head())
		default:
			fmt.Fprint(out, term.Fill("", r.head()+", not checked: "+cmp.Or(r.Why, "the data has no interval")))
		}
	}
	return err
}

// writePage writes the answer as a page, with charts of the learned world and the rows of the table that are about it.
func (t *task) writePage(ctx context.Context, out io.Writer, rows [][]string) error {
	s, cs := t.bench.Worlds[0].Scenario, t.contenders()
	flown := choice.Each(cs, func(c sim.Contender) sim.Contender { c.Policy = t.bench.Flown(c.Policy); return c })
	summaries, err := sim.Compare(ctx, s, flown, sim.CompareOptions{Seed: firstSeeds[1], Seeds: t.bench.Seeds})
	if err != nil {
		return err
	}
	page := report.Page{Scenario: s, ScenarioYAML: string(must.Have(scenario.Format(s))), PoliciesYAML: t.yaml(t.tuned),
		Version: cli.Version(), Windows: simulate.Windows(s), Summaries: summaries, Seed: firstSeeds[1], Seeds: t.bench.Seeds,
		Notes: append([]string{t.answer()}, t.notes...)}
	for i := range t.proposals {
		page.Notes = append(page.Notes, t.proposals[i].head()+": "+strings.Join(t.proposals[i].reasons(), " "))
	}
	page.Verdict.Columns = choice.Each(rows[0][2:], func(name string) report.Column { return report.Column{Name: name} })
	for _, row := range rows[1 : 1+len(cs)] {
		cells := choice.Each(row[2:], func(text string) report.Cell { return report.Cell{Text: text} })
		page.Verdict.Rows = append(page.Verdict.Rows, report.Row{Name: row[1], Cells: cells})
	}
	return report.Write(out, page)
}
