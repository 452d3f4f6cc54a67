package lint

import (
	"slices"
	"strconv"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/config"
)

// A unit is a policy file without mistakes, or the dependencies of a file of other systems.
type unit struct {
	name   string
	policy *config.PolicyFile
	place  func(path string) (line, column int)
	set    *convert.Set // of other systems; nil: a policy file
}

// A dependency is a dependency of a unit, or its defaults, which are for all names that the file
// does not list.
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

	calls *graph // of the services; nil: not made yet
	now   *plan  // without changes
	plans int    // how many were made
}

// report adds a finding about the field at path, with the severity of the rule.
func (p *pass) report(in *unit, path, message string, sum []Step, fix Fix) {
	p.reportAs(p.rule.Severity, in, path, message, sum, fix)
}

func (p *pass) reportAs(s Severity, in *unit, path, message string, sum []Step, fix Fix) {
	line, column := in.place(path)
	if in.set != nil {
		var ok bool
		if s, message, sum, ok = p.describeForOtherSystem(s, in, path, message, sum, fix); !ok {
			return
		}
	}
	f := Finding{
		Rule: p.rule.ID, Severity: s, File: in.name, Line: line, Column: column, Path: path,
		Message: message, Sum: sum, Fix: fix,
	}
	if p.about != nil {
		f.about = p.about.Name
	}
	p.findings = append(p.findings, f)
}

// describeForOtherSystem returns severity, message and sum of a finding about a file of another system, in the words of that
// system. ok is false if it is no finding there: the cap-below-base rule looks at rate_limited_base, and package convert sets
// that for files that do not retry status 429.
func (p *pass) describeForOtherSystem(s Severity, in *unit, path, message string, sum []Step, fix Fix) (Severity, string, []Step, bool) {
	name, field := in.split(path)
	d := p.named(in, name)
	if d == nil || p.rule.ID == ruleCap || fix.unable || d.hasNoSettings() || d.unknown(field) || d.unknown("attempts") && slices.Contains(ofRetries, p.rule.ID) {
		return s, message, sum, false
	}
	if !d.proved(p.rule.ID) {
		s = Note
	}
	sum = slices.Clone(sum)
	for i := range sum {
		sum[i].What = d.inWords(sum[i].What)
	}
	return s, d.inWords(message), sum, true
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
	if d.hedged() {
		return "hedge.attempts"
	}
	return "attempts"
}

// attemptFields are the fields with which calls to d make at most n attempts. Without hedges Attempts
// counts, and its default is more than one.
func (d *dependency) attemptFields(n int) []string {
	fields := []string{d.attemptsField(), strconv.Itoa(n)}
	if d.hedged() && n == 1 {
		fields = append(fields, "attempts", "1")
	}
	return fields
}

// p99s is the slowest 99th percentile that is known of d, and the path of the operation or of the
// dependency that has it. Zero: none is known.
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
