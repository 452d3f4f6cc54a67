package lint

import (
	"strconv"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
)

// A unit is one file that could be read.
type unit struct {
	name   string
	policy *config.PolicyFile
}

// A dependency is one of a unit, or the defaults of one: what is called by a name that
// the file does not explain has those.
type dependency struct {
	config.Dependency
	in   *unit
	path string
}

// at is the path of a field of the dependency.
func (d *dependency) at(field string) string { return join(d.path, field) }

// join is a path and what is under it. The policy of a file that is a single policy has
// no path.
func join(path, field string) string {
	switch {
	case path == "":
		return field
	case field == "":
		return path
	}
	return path + "." + field
}

// A service is one of a unit.
type service struct {
	config.Service
	in    *unit
	path  string
	calls []*call
}

// A call is what a service makes, with the dependency found.
type call struct {
	config.Edge
	path string
	to   *dependency // nil: it is nowhere to be found, or in several files
	// policies is how many files have a policy for it.
	policies int
	// answered is the service that answers it; nil: none that is known, a leaf.
	answered *service
}

// times is how often the call is made for each request.
func (c *call) times() int { return max(c.Times, 1) }

// A pass is one run of all rules over all files.
type pass struct {
	rule         *Rule
	about        *dependency // the one that is checked by itself; nil: none is
	units        []*unit
	dependencies []*dependency
	services     []*service
	findings     []Finding

	calls *graph // of the services, when it is known
	now   *plan  // in which nothing is changed
	plans int    // how many there were
}

// report keeps a finding about the field at path, of the severity of the rule.
func (p *pass) report(in *unit, path, message string, sum []Step, fix Fix) {
	p.reportAs(p.rule.Severity, in, path, message, sum, fix)
}

func (p *pass) reportAs(s Severity, in *unit, path, message string, sum []Step, fix Fix) {
	line, column := in.position(path)
	f := Finding{
		Rule: p.rule.ID, Severity: s, File: in.name, Line: line, Column: column, Path: path,
		Message: message, Sum: sum, Fix: fix,
	}
	if p.about != nil {
		f.about = p.about.Name
	}
	p.findings = append(p.findings, f)
}

// attempts is the most that one call to d makes, by retries or hedges.
func (d *dependency) attempts() int { return d.Policy.MaxAttempts() }

func (d *dependency) hedged() bool { return d.Policy.Hedge.Attempts > 1 }

// attemptsField is where the number of attempts is written.
func (d *dependency) attemptsField() string {
	if d.hedged() {
		return "hedge.attempts"
	}
	return "attempts"
}

// makes are the fields with which calls to d make n attempts at the most. Without hedges
// attempts count again, of which the default is more than one.
func (d *dependency) makes(n int) []string {
	fields := []string{d.attemptsField(), strconv.Itoa(n)}
	if d.hedged() && n == 1 {
		fields = append(fields, "attempts", "1")
	}
	return fields
}

// p99s are the slowest 99th percentile that is known of d, and what of: the path of the
// operation, or that of the dependency. Zero: none is known.
func (d *dependency) p99s() (slowest time.Duration, path, name string) {
	slowest, path = d.P99, d.at("p99")
	for _, o := range d.Operations {
		if o.P99 > slowest {
			slowest, path, name = o.P99, d.at("operations."+o.Name+".p99"), o.Name
		}
	}
	return slowest, path, name
}

// timeouts of a policy that are not NoTimeout; zero: there is none.
func attemptTimeout(p lull.Policy) time.Duration { return max(p.WithDefaults().AttemptTimeout, 0) }
func deadline(p lull.Policy) time.Duration       { return max(p.WithDefaults().Deadline, 0) }
