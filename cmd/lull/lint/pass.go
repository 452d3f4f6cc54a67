package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/tree"
)

// A unit is a policy file without mistakes, or the dependencies of a file of other systems.
type unit struct {
	name   string
	policy *config.PolicyFile
	place  func(path string) (line, column int)
	set    *convert.Set // of other systems; nil: a policy file
}

// A dependency is a dependency of a unit, or its defaults, which are for all names that the file does not list.
type dependency struct {
	config.Dependency
	in   *unit
	path string
}

func (d *dependency) at(field string) string { return d.path + "." + field }

type service struct {
	config.Service
	in    *unit
	path  string
	calls []*call
}

type call struct {
	config.Edge
	path string
	to   *dependency // nil: it is in no file, or in several
	// policies is the number of files with a policy for it.
	policies int
	// answered is the service that answers it; nil: none is known, so it goes to a leaf.
	answered *service
}

func (c *call) times() int { return max(c.Times, 1) }

type pass struct {
	rule         *Rule
	about        *dependency // the dependency that is checked by itself; nil: none
	units        []*unit
	dependencies []*dependency
	services     []*service
	findings     []Finding

	graph graph // of the services
	now   *plan // without changes
	plans int   // how many were made
}

// report adds a finding about the field at path, with the severity of the rule.
func (p *pass) report(in *unit, path, message string, sum []Step, fix Fix) {
	p.reportAs(p.rule.Severity, in, path, message, sum, fix)
}

func (p *pass) reportAs(s Severity, in *unit, path, message string, sum []Step, fix Fix) {
	f := Finding{Rule: p.rule.ID, Severity: s, File: in.name, Path: path, Message: message, Sum: sum, Fix: fix}
	f.Line, f.Column = in.place(path)
	if in.set != nil && !p.translated(in, &f) {
		return
	}
	if p.about != nil {
		f.about = p.about.Name
	}
	p.findings = append(p.findings, f)
}

// translated puts a finding into the words of another system. It returns false if it is none there: convert, and not the file,
// sets a rate_limited_base that is above the cap.
func (p *pass) translated(in *unit, f *Finding) bool {
	name, field := in.split(f.Path)
	d := p.named(in, name)
	if d == nil || f.Rule == ruleCap || f.Fix.unable || d.hasNoSettings() || d.unknown(field) ||
		d.unknown("attempts") && slices.Contains(ofRetries, f.Rule) {
		return false
	}
	if !d.proved(f.Rule) {
		f.Severity = Note
	}
	f.Sum = slices.Clone(f.Sum)
	for i := range f.Sum {
		f.Sum[i].What = d.inWords(f.Sum[i].What)
	}
	f.Message = d.inWords(f.Message)
	return true
}

func (p *pass) named(in *unit, name string) *dependency {
	if p.about != nil && p.about.in == in && p.about.Name == name {
		return p.about
	}
	for _, d := range p.dependencies {
		if d.in == in && d.Name == name {
			return d
		}
	}
	return nil
}

func (d *dependency) attempts() int { return d.Policy.MaxAttempts() }

func (d *dependency) hedged() bool { return d.Policy.Hedge.Attempts > 1 }

func (d *dependency) attemptsField() string {
	return choice.Either(d.hedged(), "hedge.attempts", "attempts")
}

// attemptFields are the fields with which calls to d make at most n attempts. Without hedges Attempts has a default above one.
func (d *dependency) attemptFields(n int) []string {
	fields := []string{d.attemptsField(), strconv.Itoa(n)}
	if d.hedged() && n == 1 {
		fields = append(fields, "attempts", "1")
	}
	return fields
}

// p99s is the slowest 99th percentile that is known of d, and its path. Zero: none is known.
func (d *dependency) p99s() (slowest time.Duration, path, name string) {
	slowest, path = d.P99, d.at("p99")
	for _, o := range d.Operations {
		if o.P99 > slowest {
			slowest, path, name = o.P99, d.at("operations."+o.Name+".p99"), o.Name
		}
	}
	return slowest, path, name
}

// timeouts are the timeouts of a policy that are not NoTimeout; zero: there is none.
func attemptTimeout(p lull.Policy) time.Duration { return max(p.WithDefaults().AttemptTimeout, 0) }
func deadline(p lull.Policy) time.Duration       { return max(p.WithDefaults().Deadline, 0) }

// Findings about a file of another system are in the words of that system. What the file does not say is at most a note, and what the
// system cannot set is not reported.

func (d *dependency) hasField(field string) bool {
	for ; field != ""; field = field[:max(strings.LastIndexByte(field, '.'), 0)] {
		if d.in.set.Says(d.Name, field) {
			return true
		}
	}
	return false
}

func (d *dependency) unknown(field string) bool {
	first, _, _ := strings.Cut(field, ".")
	return slices.Contains(d.in.set.Facts(d.Name).Unknown, first)
}

func (d *dependency) hasNoSettings() bool {
	return !slices.ContainsFunc([]string{"attempts", "attempt_timeout", "deadline", "backoff.base", "backoff.cap", "backoff.factor", "backoff.floor", "hedge.attempts", "budget.stock", "breaker", "limit.in_flight"}, d.hasField)
}

// endless reports whether calls make as many attempts as there is time for: a policy has a largest number, other systems none.
func (d *dependency) endless() bool { return d.in.set != nil && d.Policy.Attempts >= mostAttempts }

const mostAttempts = 1000

// evidence are the fields that make a finding of a rule more than a note, if the file has all that one of the lists names.
var evidence = map[string][][]string{
	"no-time-limit":            {{"deadline"}, {"attempt_timeout"}},
	"attempt-timeout-missing":  {{"deadline", "attempts"}, {"deadline", "hedge.attempts"}},
	"attempt-never-made":       {{"attempts", "deadline"}, {"attempts", "attempt_timeout"}, {"hedge.attempts"}},
	"worst-case-over-deadline": {{"attempts", "deadline"}, {"attempts", "attempt_timeout"}},
	"budget-missing":           {{"budget"}},
	"budget-too-large":         {{"budget"}},
	"hedge-without-budget":     {{"budget"}},
	"backoff-missing":          {{"backoff.base"}},
	"jitter-missing":           {{"backoff.base"}},
	"jitter-useless":           {{"backoff.base"}, {"backoff.cap"}},
	"breaker-cannot-trip":      {{"breaker"}},
	"breaker-trips-on-one":     {{"breaker"}},
	"slow-call-unseen":         {{"breaker"}},
	"retry-not-idempotent":     {{"attempts"}, {"hedge.attempts"}},
}

// proved reports whether the file of d has what a finding of the rule is about.
func (d *dependency) proved(rule string) bool {
	all, ok := evidence[rule]
	if rule == "no-time-limit" && d.attempts() < 2 {
		return false // it may be for streams, which have no end
	}
	return !ok || slices.ContainsFunc(all, func(fields []string) bool {
		return !slices.ContainsFunc(fields, func(field string) bool { return !d.hasField(field) })
	})
}

// writeForOtherSystem is write for the file of another system: each field has the name of that system.
func (d *dependency) writeForOtherSystem(fields []string) Fix {
	p, err := with(d.Policy, fields)
	if err != nil {
		return Fix{unable: true}
	}
	var changed []string
	for i := 0; i < len(fields); i += 2 {
		changed = append(changed, fields[i])
	}
	return inWordsOf(d.in.set, d.Name, p, changed)
}

// inWordsOf is the fix after which the fields of the policy of a dependency are those of p.
func inWordsOf(set *convert.Set, name string, p lull.Policy, fields []string) Fix {
	edits, missing := set.Edits(name, p, fields...)
	if len(missing) > 0 || len(edits) == 0 {
		return Fix{unable: true, Text: fmt.Sprintf("see to %s of %s, for which %s has no field here", list(fields), name, set.Format(name).System())}
	}
	var f Fix
	var parts []string
	home := set.Position(name, "").File
	for i := 0; i < len(edits); {
		at := edits[i]
		var written, removed []string
		for ; i < len(edits) && edits[i].Part == at.Part && edits[i].Position == at.Position; i++ {
			e := edits[i]
			f.Changes = append(f.Changes, Change{Path: tree.Concat(e.Part, e.Field), Value: e.Value, File: e.File, Line: e.Line})
			if e.Value == "" {
				removed = append(removed, shownField(e.Field))
			} else {
				written = append(written, shownField(e.Field)+": "+e.Value)
			}
		}
		parts = append(parts, action("write ", written, where(at, home)), action("remove ", removed, where(at, home)))
	}
	f.Text = strings.Join(slices.DeleteFunc(parts, isBlank), "; ")
	if now, _ := set.File.Dependency(name); set.Format(name) == convert.Dapr && now.Policy.Attempts >= mostAttempts && now.Policy.Backoff.Kind == backoff.Constant && p.Backoff != now.Policy.Backoff {
		f.Text += "; then Dapr begins no retry later than 15 minutes after the first attempt"
	}
	return f
}

func action(what string, fields []string, where string) string {
	if len(fields) == 0 {
		return ""
	}
	return what + list(fields) + where
}

// where is the part of an edit, for a finding in the file home.
func where(e convert.Edit, home string) string {
	line := choice.Either(e.File != home, fmt.Sprintf("%s:%d", e.File, e.Line), fmt.Sprintf("line %d", e.Line))
	if e.Part == "" {
		return " (" + line + ")"
	}
	return " in " + e.Part + " (" + line + ")"
}

func shownField(path string) string {
	if key, ok := strings.CutPrefix(path, `["`); ok {
		return strings.TrimSuffix(key, `"]`)
	}
	return path
}

// ofRetries are rules about retries. They have nothing to report if it is not known whether there are any.
var ofRetries = []string{"budget-missing", "budget-too-large", "backoff-missing", "jitter-missing", "jitter-useless", "attempt-timeout-missing", "attempt-never-made", "worst-case-over-deadline"}

var fieldNames = []string{"attempt_timeout", "deadline", "hedge.attempts", "hedge.delay", "backoff.kind", "backoff.base", "backoff.cap", "backoff.jitter",
	"budget.unlimited", "budget.ratio", "breaker.consecutive_for", "breaker.consecutive", "breaker.failure_rate", "breaker.slow_rate", "breaker.slow_call", "breaker.min_calls", "attempts"}

// inWords is text with the names that the system of d has for the fields of policies in it.
func (d *dependency) inWords(text string) string {
	for _, field := range fieldNames {
		own, _ := convert.FieldName(d.in.set.Format(d.Name), field)
		for _, around := range [][2]string{{" (", ")"}, {"(", ")"}, {"(", ":"}} {
			if with := around[0] + field + around[1]; strings.Contains(text, with) {
				instead := around[0] + own + around[1]
				if own == "" && around[1] == ")" {
					instead = ""
				}
				text = strings.ReplaceAll(text, with, instead)
			}
		}
	}
	return text
}
