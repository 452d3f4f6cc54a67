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
calls are retried or hedged. If the program marks all its calls, ignore the rule there, with
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

func retryNotIdempotent(p *pass, d *dependency) {
	n := d.attempts()
	if n < 2 {
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
