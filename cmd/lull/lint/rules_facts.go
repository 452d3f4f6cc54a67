package lint

import (
	"fmt"
	"math"
	"strconv"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/saturating"
)

// repeatsMethods reports a route for a method that must not be repeated, and is retried even if a request may have been sent.
func (p *pass) repeatsMethods(d *dependency) {
	for _, m := range d.in.set.Facts(d.Name).Methods {
		if m.Name != "POST" && m.Name != "PATCH" || d.in.set.RetriesUnsent(d.Name) {
			continue
		}
		attempts, times := "without end", "as often as attempts say"
		if !d.endless() {
			attempts = strconv.Itoa(d.attempts())
			times = attempts + " times"
		}
		fix := d.write("", d.attemptFields(1)...)
		if fix.Text != "" {
			fix.Text += ". Or is each of these requests safe to repeat, since the service heeds an idempotency key? Then ignore this here"
		}
		p.report(d.in, d.at(d.attemptsField()),
			fmt.Sprintf("a route to %s is for %s, and its requests are retried: one may be carried out %s", d.Name, m.Name, times),
			[]Step{
				{What: "the method that the route names (line " + strconv.Itoa(m.Line) + ")", Value: m.Name},
				{What: "attempts of one request, of which the service may carry out each, if answers are lost", Value: attempts},
			}, fix)
		return
	}
}

func retryNotIdempotent(p *pass, d *dependency) {
	n := d.attempts()
	if n < 2 {
		return
	}
	if d.in.set != nil {
		p.repeatsMethods(d)
		return
	}
	for _, o := range d.Operations {
		if o.Idempotent != config.No || o.Keyed {
			continue
		}
		path := d.at("operations." + o.Name)
		what, how := "retried", "one after another"
		if d.hedged() {
			what, how = "hedged", "side by side"
		}
		p.report(d.in, path+".idempotent",
			fmt.Sprintf("%s's %s is not idempotent, and calls to %s are %s: unless each call of it says so, it may be carried out %d times", d.Name, o.Name, d.Name, what, n),
			[]Step{
				{What: "attempts of one call, " + how, Value: strconv.Itoa(n)},
				{What: "of these the server may carry out, if answers are lost", Value: strconv.Itoa(n)},
				{What: "and should", Value: "1"},
			},
			Fix{Text: fmt.Sprintf("does each call carry an idempotency key, and does the server heed it? Then write keyed: true in %s. If not, make it a dependency of its own with attempts: 1, or see to it that lull knows (lull.NotIdempotent; lullhttp knows POST and PATCH)", path)})
	}
}

func visibilityBelowHandler(p *pass, s *service) {
	handler, steps := s.Handler, []Step{{"the handler runs for at most", pretty(s.Handler), ""}}
	if handler == 0 {
		var l ledger
		s.addUp(&l)
		handler, steps = l.sum, l.steps
	}
	if handler <= 0 || s.Visibility <= 0 || s.Visibility > handler {
		return
	}
	severity, message := Error, "messages for %s are handed out again after %s, and handling one may take %s"
	if s.hasLullServer() {
		severity, message = Note, "messages for %s are hidden for %s, and handling one may take %s: lull's consumer must be able to extend that"
	}
	steps = append(steps,
		Step{"the message is hidden for", pretty(s.Visibility), ""},
		Step{"two consumers work on it for", pretty(handler - s.Visibility), ""})
	enough := up(saturating.Add(handler, handler/2))
	if handler == math.MaxInt64 {
		p.reportAs(severity, s.in, s.path+".visibility", fmt.Sprintf("messages for %s are hidden for %s, and nothing ends the calls of the handler", s.Name, pretty(s.Visibility)),
			steps[:len(steps)-1], Fix{Text: "write a deadline in the dependencies that it calls, and handler in " + s.path})
		return
	}
	p.reportAs(severity, s.in, s.path+".visibility",
		fmt.Sprintf(message, s.Name, pretty(s.Visibility), pretty(handler)),
		steps,
		Fix{Text: fmt.Sprintf("can the visibility timeout of the queue be %s, half as long again as the handler? Then set it there, and write visibility: %s in %s. Or let the consumer extend it while the handler runs, as lull's does, and leave visibility out",
			pretty(enough), pretty(enough), s.path)})
}

// Rules about the files themselves.
const (
	ruleCap       = "cap-below-base"
	ruleMistake   = "file-mistake"
	ruleUnknown   = "policy-unknown"
	ruleDirective = "ignore-comment"
)

const mostGuesses = 20

func policyUnknown(p *pass) {
	names := choice.Each(p.dependencies, func(d *dependency) string { return d.Name })
	seen := map[string]bool{}
	for _, s := range p.services {
		for _, c := range s.calls {
			if c.to != nil || seen[s.in.name+"\x00"+c.Dependency] {
				continue
			}
			seen[s.in.name+"\x00"+c.Dependency] = true
			if c.policies > 1 {
				p.report(s.in, c.path, fmt.Sprintf("%s calls %s, and %d files say with what policy, but not its own: it is left out of all sums", s.Name, c.Dependency, c.policies), nil,
					Fix{Text: fmt.Sprintf("add %s to the dependencies of %s, or check the files of one program at a time", c.Dependency, s.in.name)})
				continue
			}
			guess := ""
			if near := choice.Nearest(c.Dependency, names); near != "" && len(seen) < mostGuesses {
				guess = "; did you mean " + near + "?"
			}
			p.report(s.in, c.path, fmt.Sprintf("%s calls %s, and no file says with what policy: it is left out of all sums", s.Name, c.Dependency), nil,
				Fix{Text: fmt.Sprintf("add %s to the dependencies of a file, and check the files together%s", c.Dependency, guess)})
		}
	}
}
