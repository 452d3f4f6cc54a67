package tune

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/simulate/report"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/lab/battery"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// answer is the first sentence.
func (t *task) answer(d decision) string {
	changes := 0
	for _, r := range d.proposals {
		if r.Kept {
			changes++
		}
	}
	switch {
	case changes == 0 && t.Policy == "":
		return "Keep the zero policy: nothing that the data supports is better in this world and worse in none."
	case changes == 0 && d.asGood:
		return "The zero policy is as good as the one in use: keep the zero policy."
	case changes == 0:
		return "Keep the policy in use: nothing that the data supports is better in this world and worse in none."
	case d.asGood:
		return fmt.Sprintf("The zero policy is as good as the one in use. From there, change %s.", term.Counted(changes, "field"))
	}
	return fmt.Sprintf("Change %s.", term.Counted(changes, "field"))
}

// reasons are sentences about a proposal.
func (r *proposal) reasons() (all []string) {
	add := func(what, text string) {
		if text != "" {
			all = append(all, what+text+".")
		}
	}
	add("Data: ", r.Data)
	if r.Value != "" {
		add("Formula: ", r.Formula)
		add("Price: ", r.Price)
	}
	return all
}

// print prints the answer with its reasons.
func (t *task) print(env cli.Env, d decision) error {
	rows, err := t.table(env.Context, d)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(env.Stdout)
	fmt.Fprint(out, term.Fill("", t.answer(d)))
	for _, note := range append(t.notes, d.notes...) {
		fmt.Fprint(out, term.Fill("", note))
	}
	fmt.Fprintln(out)
	for i := range d.proposals {
		r := &d.proposals[i]
		head := r.Field + ": " + r.InUse
		if r.Value != "" {
			head += ", proposed " + r.Value
		}
		if r.Allowed != "" {
			head += "; the data allows " + r.Allowed
		}
		fmt.Fprint(out, term.Fill("", head))
		for _, text := range append([]string{r.Verdict}, r.reasons()...) {
			fmt.Fprint(out, term.Fill("  ", text))
		}
	}
	fmt.Fprintln(out)
	term.Table(out, rows, 100)
	fmt.Fprint(out, term.Fill("", t.legend()))
	fmt.Fprint(out, t.diff(d))
	return out.Flush()
}

// contenders are the policies of the table, each once.
func (t *task) contenders(d decision) []config.NamedPolicy {
	all := []config.NamedPolicy{{Name: "zero"}}
	if t.present != (lull.Policy{}) {
		all = append(all, config.NamedPolicy{Name: "in use", Policy: t.present})
	}
	if d.tuned != d.base {
		all = append(all, config.NamedPolicy{Name: "tuned", Policy: d.tuned})
	}
	return all
}

// table returns the figures of all contenders in all worlds, below their names. A star is beside policies that no other dominates.
func (t *task) table(ctx context.Context, d decision) ([][]string, error) {
	from := uint64(chosenWith)
	if d.tuned != d.base {
		from = confirmedWith
	}
	rows := [][]string{{"world", "policy", "success", "back", "calls held", "attempts/call"}}
	for w, world := range t.bench.Worlds {
		name := world.Name
		for _, c := range t.contenders(d) {
			runs, err := t.bench.Fly(ctx, c.Policy, w, from)
			mark := " *"
			for _, other := range t.contenders(d) {
				differences, failed := t.bench.Differences(ctx, other.Policy, c.Policy, w, from)
				if slices.ContainsFunc(differences, battery.Difference.Better) && !slices.ContainsFunc(differences, battery.Difference.Worse) {
					mark = ""
				}
				err = cmp.Or(err, failed)
			}
			if err != nil {
				return nil, err
			}
			back := "–"
			if !world.Stationary {
				back = battery.BackIn(runs)
			}
			f := battery.Flown{Runs: runs}
			rows = append(rows, []string{name, c.Name + mark, battery.Percent(runs), back, fmt.Sprintf("%.3g", f.Held()), fmt.Sprintf("%.3f", f.Amplification())})
			name = ""
		}
	}
	return rows, nil
}

// legend explains the table.
func (t *task) legend() string {
	success := "Success"
	if t.goals.slo > 0 {
		success += fmt.Sprintf(" within %v", t.goals.slo)
	}
	return fmt.Sprintf("%s and attempts are of all calls, back is after the fault, held is how many calls were in progress on average; means of %d seeds. * no other policy is better in one of them and worse in none.", success, t.bench.Seeds)
}

// yaml is the part of a policy file that a policy is.
func (t *task) yaml(p lull.Policy) string {
	text, err := config.FormatPolicies([]config.NamedPolicy{{Name: t.file.Dependencies[t.dependency].Name, Policy: p}})
	if err != nil { // of a valid policy
		return err.Error() + "\n"
	}
	return string(text)
}

// diff is what changes in the policy file, by lines.
func (t *task) diff(d decision) string {
	before, after := t.yaml(t.present), t.yaml(d.tuned)
	var b strings.Builder
	without := func(lines, others, mark string) {
		for line := range strings.Lines(lines) {
			if !slices.Contains(strings.SplitAfter(others, "\n"), line) {
				b.WriteString(mark + line)
			}
		}
	}
	if before != after {
		b.WriteString("\n")
	}
	without(before, after, "- ")
	without(after, before, "+ ")
	return b.String()
}

// policyFile returns the file with the tuned policy, with comments.
func (t *task) policyFile(d decision) ([]byte, error) {
	file := *t.file
	file.Dependencies = slices.Clone(file.Dependencies)
	own := &file.Dependencies[t.dependency]
	own.Policy = d.tuned
	if d.asGood {
		own.Preset = ""
	}
	text, err := config.FormatPolicyFile(&file)
	if err != nil {
		return nil, err
	}
	// Each reason stands above the line of its field, in the dependency that it is about.
	above := map[string]string{}
	for _, r := range d.proposals {
		if key, _, _ := strings.Cut(r.Field, "."); r.Kept {
			above[key] += commented("    ", r.Field+" was "+r.InUse+". "+strings.Join(append(r.reasons(), "It "+r.Verdict+"."), " "))
		}
	}
	var b strings.Builder
	b.WriteString(commented("", fmt.Sprintf("%s By lull tune, from %s.", t.answer(d), t.World)))
	head, _, _ := strings.Cut(strings.TrimPrefix(t.yaml(d.tuned), "dependencies:\n"), ":")
	within := false
	for line := range strings.Lines(string(text)) {
		if indent := len(line) - len(strings.TrimLeft(line, " ")); indent <= 2 {
			within = strings.HasPrefix(line, head+":")
		} else if key, _, _ := strings.Cut(line[4:], ":"); within && indent == 4 {
			b.WriteString(above[key])
		}
		b.WriteString(line)
	}
	return []byte(b.String()), nil
}

// commented returns text as lines of a comment.
func commented(indent, text string) string {
	lines := strings.Split(strings.TrimSuffix(term.Fill(indent+"# ", text), "\n"), "\n")
	for i := range lines {
		lines[i] = indent + "# " + strings.TrimPrefix(strings.TrimSpace(lines[i]), "# ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// check prints the interval of each field, and fails if the policy in use sets a value outside.
func (t *task) check(env cli.Env) error {
	outside := false
	for _, r := range propose(&t.facts, t.present, t.goals) {
		switch {
		case r.Outside:
			outside = true
			fmt.Fprintf(env.Stdout, "%s: %s is %s: want %s\n", t.Policy, r.Field, r.InUse, r.Allowed)
			fmt.Fprint(env.Stdout, term.Fill("  ", "Data: "+r.Data+"."))
		case r.Allowed != "":
			fmt.Fprintf(env.Stdout, "%s: %s; the world allows %s\n", r.Field, r.InUse, r.Allowed)
		default:
			fmt.Fprint(env.Stdout, term.Fill("", r.Field+": "+r.InUse+", not checked: "+cmp.Or(r.Why, "the data has no interval")))
		}
	}
	if outside {
		return errors.New("the policy has values outside of the intervals that the world allows")
	}
	return nil
}

// writePage writes the answer as a page, with charts of the learned world.
func (t *task) writePage(ctx context.Context, out io.Writer, d decision) error {
	w := t.bench.Worlds[0]
	var cs []sim.Contender
	for _, c := range t.contenders(d) {
		cs = append(cs, sim.Contender{Name: c.Name, Policy: t.bench.Flown(c.Policy)})
	}
	summaries, err := sim.Compare(ctx, w.Scenario, cs, sim.CompareOptions{Seed: confirmedWith, Seeds: t.bench.Seeds, Workers: t.bench.Workers})
	if err != nil {
		return err
	}
	yaml, err := scenario.Format(w.Scenario)
	if err != nil {
		return err
	}
	page := report.Page{Scenario: w.Scenario, ScenarioYAML: string(yaml), PoliciesYAML: t.yaml(d.tuned), Version: cli.Version(),
		Summaries: summaries, Seed: confirmedWith, Seeds: t.bench.Seeds, Notes: append([]string{t.answer(d)}, append(t.notes, d.notes...)...)}
	for i := range d.proposals {
		r := &d.proposals[i]
		page.Notes = append(page.Notes, r.Field+", in use "+r.InUse+": "+r.Verdict+". "+strings.Join(r.reasons(), " "))
	}
	rows, err := t.table(ctx, d)
	if err != nil {
		return err
	}
	for _, name := range rows[0][2:] {
		page.Verdict.Columns = append(page.Verdict.Columns, report.Column{Name: name})
	}
	for _, row := range rows[1 : 1+len(cs)] { // those of the learned world
		of := report.Row{Name: row[1]}
		for _, text := range row[2:] {
			of.Cells = append(of.Cells, report.Cell{Text: text})
		}
		page.Verdict.Rows = append(page.Verdict.Rows, of)
	}
	for _, x := range w.Scenario.Services[t.facts.service].Faults {
		page.Windows = append(page.Windows, report.Window{From: x.At, To: min(x.At+x.For, w.Scenario.Horizon), Kind: "fault", Mark: x.Kind.String(), What: x.Kind.String()})
	}
	return report.Write(out, page)
}
