package lint

import (
	"fmt"
	"strconv"

	"github.com/lullgo/lull/config"
)

func safetyRules() []Rule {
	return []Rule{{
		ID:       "retry-not-idempotent",
		Severity: Warning,
		Title:    "An operation that must not be repeated has several attempts",
		Why: `A caller that gets no answer cannot know whether the operation was carried out. If
carrying it out twice is not the same as once, a retry may charge a card twice, and a hedge
sends the charge twice on purpose. HTTP clients may repeat methods that are idempotent by definition, and others only
with a way to know that it is safe: a key that makes the server carry them out once.

A call that is marked as not idempotent is repeated by lull only if the request was never
sent. lullhttp marks POST and PATCH itself; with lull.Do and lullgrpc the program marks each
call. A policy file cannot show whether it does. If it does, the retries of this policy are
never made. If it does not, they are made by mistake.

The rule finds operations with idempotent: false and without keyed: true, of dependencies whose
calls are retried or hedged. In files of other systems it finds retries of a route that names
POST or PATCH, unless they follow only a connection that failed. If the program marks all its calls, ignore the rule there, with
that as the reason.`,
		Sources: []Source{
			{"RFC 9110, HTTP Semantics, 9.2.2 Idempotent Methods", "https://www.rfc-editor.org/rfc/rfc9110.html#section-9.2.2"},
			{"IETF draft, The Idempotency-Key HTTP Header Field", "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/"},
			srcBuilders,
		},
		Bad: `dependencies:
  payments:
    attempts: 3
    operations:
      charge: {idempotent: false}
      status: {idempotent: true}
`,
		Good: `dependencies:
  payments:
    attempts: 3
    operations:
      charge: {idempotent: false, keyed: true}
      status: {idempotent: true}
`,
		check: eachPolicy(retryNotIdempotent),
	}}
}

// repeatsMethods reports a route of another system that names a method which must not be repeated, and
// is retried after more than what was certainly not sent.
func (p *pass) repeatsMethods(d *dependency) {
	for _, m := range d.in.set.Facts(d.Name).Methods {
		if m.Name != "POST" && m.Name != "PATCH" || d.in.set.RetriesUnsent(d.Name) {
			continue
		}
		times := "as often as attempts say"
		if !d.endless() {
			times = fmt.Sprintf("%d times", d.attempts())
		}
		fix := d.write("", d.makes(1)...)
		if fix.Text != "" {
			fix.Text += ". Or is each of these requests safe to repeat, since the service heeds an idempotency key? Then ignore this here"
		}
		p.report(d.in, d.at(d.attemptsField()),
			fmt.Sprintf("a route to %s is for %s, and its requests are retried: one may be carried out %s", d.Name, m.Name, times),
			[]Step{
				{What: "the method that the route names (line " + strconv.Itoa(m.Line) + ")", Value: m.Name},
				{What: "attempts of one request, of which the service may carry out each, if answers are lost", Value: attemptsWord(d)},
			}, fix)
		return
	}
}

// attemptsWord is the number of attempts of a call.
func attemptsWord(d *dependency) string {
	if d.endless() {
		return "without end"
	}
	return strconv.Itoa(d.attempts())
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
