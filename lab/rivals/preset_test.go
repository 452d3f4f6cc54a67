package rivals

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func lowest() uint64  { return 0 }
func highest() uint64 { return math.MaxUint64 }

// find is Find for names that exist.
func find(t testing.TB, name string) Preset {
	t.Helper()
	p := must.Have(Find(name))
	return p
}

// dependency is one under p, as a user would make it.
func dependency(t testing.TB, p Preset) *lull.Dependency {
	t.Helper()
	d := must.Have(lull.NewDependency(p.Name, p.Policy, p.Options()...))
	return d
}

// fail makes a call whose attempts all fail at once with v, and returns the waits
// and why it ended. No more than most retries are made.
func fail(t testing.TB, p Preset, d *lull.Dependency, now time.Duration, v lull.Verdict, random func() uint64, most int) (waits []time.Duration, why lull.Reason) {
	t.Helper()
	v = p.Reads.Verdict(v)
	c, step := d.State().Start(now, engine.Spec{})
	for !step.Done {
		if step = c.Attempt(now, random); step.Wait > 0 { // held back by the throttle
			now += step.Wait
			step = c.Attempt(now, random)
		}
		if step.Done {
			break
		}
		if step = c.Next(now, v, random); step.Done {
			break
		}
		if len(waits) == most {
			return waits, c.Stop(now, engine.Canceled, random).Reason
		}
		waits = append(waits, step.Wait)
		now += step.Wait
	}
	return waits, step.Reason
}

// succeed makes a call that succeeds at once.
func succeed(t testing.TB, d *lull.Dependency, now time.Duration) {
	t.Helper()
	c, step := d.State().Start(now, engine.Spec{})
	if step.Done {
		t.Fatalf("refused: %v", step.Reason)
	}
	c.Attempt(now, nil)
	if step = c.Next(now, lull.Verdict{Kind: lull.KindSuccess}, nil); step.Reason != engine.Success {
		t.Fatalf("ended with %v", step.Reason)
	}
}

var transient = lull.Verdict{Kind: lull.KindTransient, Code: "503"}

func TestEveryPresetIsComplete(t *testing.T) {
	names := map[string]bool{}
	name := regexp.MustCompile(`^[a-z0-9]+([-+.][a-z0-9]+)*$`)
	for _, p := range All() {
		if !name.MatchString(p.Name) || names[p.Name] {
			t.Errorf("%q is no name, or given twice", p.Name)
		}
		names[p.Name] = true
		for field, s := range map[string]string{"Title": p.Title, "Source": p.Source} {
			if s == "" || len(s) > 300 || strings.Contains(s, "\n") {
				t.Errorf("%s: %s %q, want one line", p.Name, field, s)
			}
		}
		if s := p.Note; strings.TrimSpace(s) != s || s != "" && !strings.HasSuffix(s, ".") {
			t.Errorf("%s: Note %q, want sentences", p.Name, s)
		}
		d := dependency(t, p)
		if _, why := fail(t, p, d, 0, lull.Verdict{Kind: lull.KindPermanent}, nil, 0); why != engine.Permanent {
			t.Errorf("%s: a permanent failure ends with %v", p.Name, why)
		}
		succeed(t, d, time.Second)
	}
}

func TestLullIsTheZeroPolicy(t *testing.T) {
	if p := find(t, "lull"); p.Policy != (lull.Policy{}) || p.Options() != nil {
		t.Errorf("%+v", p)
	}
}

// Processes that share a preset share no budget, however they were made.
func TestBudgetsArePerDependency(t *testing.T) {
	for _, p := range All() {
		if p.Budget == (Budget{}) {
			continue
		}
		opts := p.Options()
		first := must.Have(lull.NewDependency("first", p.Policy, opts...))
		second, _ := lull.NewDependency("second", p.Policy, opts...)
		third := first.Clone("third")
		if first.Budget() == second.Budget() || first.Budget() == third.Budget() || second.Budget() == third.Budget() {
			t.Errorf("%s: a budget is shared", p.Name)
		}
		want := second.Budget().Balance(0)
		for range 2000 {
			first.Budget().Failed(0)
			first.Budget().Withdraw(0, budget.Transient, nil)
		}
		check.Equal(t, second.Budget().Balance(0), want, "%s: balance after another's retries", p.Name)
	}
}
