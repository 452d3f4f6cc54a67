package lint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

func layersOf(all []Finding) (out []Finding) {
	for _, f := range all {
		if f.Rule == "retries-in-layers" {
			out = append(out, f)
		}
	}
	return out
}

// Findings have the numbers of the engine: attempts at the bottom of several layers, all of which
// fail. Some layers have servers that know which attempt they work on. inTime: they also answer
// "don't retry", as package lullhttp does; otherwise that answer comes too late.
func TestAttemptsAreThoseOfTheEngine(t *testing.T) {
	r := rand.New(rand.NewPCG(seed.Fresh(t), 3))
	multiply := map[multiplicity]int{}
	for range 600 {
		w, inTime := randomWay(r), r.IntN(2) == 0
		got := w.end((*service).hasLullServer, inTime)
		if want := fly(t, w, inTime, false); got != want {
			t.Fatalf("%s\nin time: %v: said to be %d, and is %d", w, inTime, got, want)
		}
		l, m := w.reach()
		if l.sum() != w.end((*service).hasLullServer, false) {
			t.Fatalf("%s\nthe way is %d to the search, and %d to the sum", w, l.sum(), w.end((*service).hasLullServer, false))
		}
		switch n, factors := w.end((*service).hasLullServer, false), w.factors(); {
		case (m == oneLayer) != (len(factors) < 2), m == adding && n != sumOf(factors), m == multiplied && n <= sumOf(factors):
			t.Fatalf("%s\nkind %d of %d attempts, %v", w, m, n, factors)
		}
		multiply[m]++
	}
	check.Equal(t, len(multiply), 3, "%v", multiply)
}

// Policy.Nested is about hedges too: what is slow is not hedged for a retry.
func TestHedgesOfRetriesAreThoseOfTheEngine(t *testing.T) {
	for nested, attempts := range map[engine.NestedRetries]uint64{engine.NestedNever: 4, lull.NestedAlways: 8} {
		hedging := lull.Policy{Nested: nested, Hedge: hedge.Config{Attempts: 2, Delay: 10 * time.Millisecond, Share: -1}}
		w := wayOf([]lull.Policy{hedging, hedging, hedging}, []bool{false, true, true})
		synctest.Test(t, func(t *testing.T) {
			if got, want := w.end((*service).hasLullServer, false), fly(t, w, false, true); got != want || got != attempts {
				t.Errorf("nested: %v: said to be %d, and is %d", nested, got, want)
			}
		})
	}
}

// randomWay is a way of one to four layers, some of which have lull's server half.
func randomWay(r *rand.Rand) way {
	var policies []lull.Policy
	var lulls []bool
	for range 1 + r.IntN(4) {
		policies = append(policies, lull.Policy{Attempts: 1 + r.IntN(4), Nested: one(r, engine.NestedNever, engine.NestedNever, lull.NestedAlways)})
		lulls = append(lulls, r.IntN(3) > 0)
	}
	w := wayOf(policies, lulls)
	w.root.Deliveries = one(r, 0, 0, 1, 3)
	return w
}

func wayOf(policies []lull.Policy, lulls []bool) (w way) {
	for i, p := range policies {
		s := &service{Service: config.Service{Name: fmt.Sprint("s", i)}}
		if lulls[i] {
			s.Server = config.LullServer
		}
		to := &dependency{Dependency: config.Dependency{Name: fmt.Sprint("d", i), Policy: p}}
		w.hops = append(w.hops, hop{s, &call{to: to}})
	}
	w.root = w.hops[0].from
	return w
}

// reach is w as the search in the graph comes upon it.
func (w way) reach() (load, multiplicity) {
	r := w.root.begins()
	for i, h := range w.hops {
		if i > 0 {
			r = r.to(h.from)
		}
		r = r.on(h.from, h.call)
	}
	return r.load, r.multiplicity
}

func (w way) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d deliveries", w.root.Deliveries)
	for _, h := range w.hops {
		fmt.Fprintf(&b, ", %v: %d attempts (nested: %v)", h.from.Server, h.call.to.most(), h.call.to.Policy.Nested)
	}
	return b.String()
}

// errGiven is a failure that comes with "don't retry".
var errGiven = errors.New("don't retry")

// fly runs a message or a request with the engine. It fails at the bottom, or is slow there. fly
// counts the attempts at the bottom.
func fly(t *testing.T, w way, inTime, slow bool) uint64 { //clock: it is called in bubbles
	t.Helper()
	var deps []*lull.Dependency
	for _, h := range w.hops {
		p := h.call.to.Policy
		p.Backoff, p.Budget, p.Breaker = backoff.Schedule{Kind: backoff.Constant}, budget.Config{Unlimited: true}, breaker.Config{Off: true}
		d := must.Have(lull.NewDependency(h.call.to.Name, p, lull.WithClassifier(func(err error) lull.Verdict {
			if errors.Is(err, errGiven) {
				return lull.Verdict{Kind: lull.KindOverloaded}
			}
			return lull.Verdict{Kind: lull.KindTransient}
		})))
		deps = append(deps, d)
	}
	var bottom atomic.Uint64
	failed := errors.New("down")
	var serve func(ctx context.Context, i int) error
	serve = func(ctx context.Context, i int) error {
		if i == len(w.hops) {
			bottom.Add(1)
			if slow {
				time.Sleep(time.Second)
			}
			return failed
		}
		s := w.hops[i].from
		if !s.hasLullServer() {
			ctx = context.Background()
		}
		in := inbound.From(ctx)
		_, err := lull.DoHedged(ctx, deps[i], func(ctx context.Context) (struct{}, error) {
			a, _ := lull.AttemptFrom(ctx)
			request, _ := inbound.With(context.WithoutCancel(ctx), a.Number+in.Attempt()-1, 0)
			return struct{}{}, serve(request, i+1)
		})
		switch {
		case err == nil:
			t.Error("nothing failed")
		case inTime && s.hasLullServer() && in.GaveUp():
			return errGiven
		}
		return failed
	}
	for n := range max(w.root.Deliveries, 1) {
		ctx, _ := inbound.With(context.Background(), n+1, 0)
		serve(ctx, 0)
	}
	return bottom.Load()
}

// The worst way to each leaf is found, compared with trying all ways.
func TestWorstWayIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(seed.Fresh(t), 4))
	notes := 0
	for range 500 {
		// Services a, b, c, ... call only those after them; the last letters are leaves.
		n := 3 + r.IntN(5)
		f := &config.PolicyFile{}
		for i := range n {
			p := lull.Policy{Attempts: 1 + r.IntN(4), Nested: one(r, engine.NestedNever, engine.NestedNever, lull.NestedAlways)}
			f.Dependencies = append(f.Dependencies, config.Dependency{Name: letter(i), Policy: p})
		}
		calls, called := map[int][]int{}, map[int]bool{}
		for i := range n - 1 {
			s := config.Service{Name: letter(i), Deliveries: one(r, 0, 0, 3), Server: one(r, config.OtherServer, config.LullServer, config.LullServer)}
			for j := i + 1; j < n; j++ {
				if r.IntN(2) == 0 {
					calls[i], called[j] = append(calls[i], j), true
					s.Calls = append(s.Calls, config.Edge{Dependency: letter(j)})
				}
			}
			f.Services = append(f.Services, s)
		}
		type worst struct{ multiplied, added int }
		most := map[string]*worst{}
		var walk func(way []int)
		walk = func(way []int) {
			end := way[len(way)-1]
			for _, j := range calls[end] {
				walk(append(slices.Clone(way), j))
			}
			if len(calls[end]) > 0 || len(way) < 2 {
				return
			}
			var policies []lull.Policy
			var lulls []bool
			for i, j := range way[1:] {
				policies = append(policies, f.Dependencies[j].Policy)
				lulls = append(lulls, f.Services[way[i]].Server == config.LullServer)
			}
			w := wayOf(policies, lulls)
			w.root.Deliveries = f.Services[way[0]].Deliveries
			total, factors := int(w.end((*service).hasLullServer, false)), w.factors()
			m := most[letter(end)]
			if m == nil {
				m = new(worst)
				most[letter(end)] = m
			}
			switch {
			case len(factors) < 2:
			case total > int(sumOf(factors)):
				m.multiplied = max(m.multiplied, total)
			default:
				m.added = max(m.added, total)
			}
		}
		for i := range n - 1 {
			if d := f.Services[i].Deliveries; !called[i] || d > 1 {
				walk([]int{i})
			}
		}
		said := map[string]Finding{}
		for _, g := range layersOf(findings(f)) {
			said[strings.TrimSuffix(strings.TrimPrefix(g.Path, "dependencies."), ".attempts")] = g
		}
		for leaf, m := range most {
			want, severity := m.multiplied, Warning
			if want == 0 {
				want, severity = m.added, Note
			}
			g, ok := said[leaf]
			switch {
			case want == 0 && ok, want > 0 && (!ok || g.Severity != severity || !strings.Contains(g.Message, fmt.Sprintf("may become %d attempts at %s:", want, leaf))):
				t.Fatalf("%+v\n%s: want %d, a %v: %v %s", f, leaf, want, severity, g.Severity, g.Message)
			case severity == Note:
				notes++
			}
		}
	}
	if notes == 0 {
		t.Error("nothing ever adds up")
	}
}

func letter(i int) string { return string(rune('a' + i)) }

// Circles of any form end, and are reported with their calls.
func TestCircles(t *testing.T) {
	for services, want := range map[string]string{
		"a: {calls: [a]}":                                                    "a → a",
		"a: {calls: [b]}, b: {calls: [a]}":                                   "b → a → b",
		"a: {calls: [b]}, b: {calls: [c]}, c: {calls: [b]}":                  "c → b → c",
		"a: {calls: [b]}, b: {calls: [c]}, c: {calls: [d]}, d: {calls: [a]}": "d → a → b → c → d",
		"a: {calls: [b, c]}, b: {calls: [d]}, c: {calls: [d]}, d: {}":        "",
	} {
		var got []string
		for _, g := range linted(t, "defaults: {attempts: 1}\nservices: {"+services+"}\n").Findings {
			got = append(got, strings.TrimPrefix(g.Message, "calls go in a circle: "))
		}
		check.Equal(t, strings.Join(got, "; "), want, "%s", services)
	}
}

// A graph as large as a file can hold is done in a moment.
func TestLargeGraphs(t *testing.T) {
	t.Parallel()
	const services = 1500
	var chain, star strings.Builder
	chain.WriteString("defaults: {attempts: 2, attempt_timeout: 1s}\nservices:\n")
	star.WriteString("defaults: {attempts: 2, attempt_timeout: 1s}\nservices:\n")
	for i := range services {
		fmt.Fprintf(&chain, "  s%d: {slo: 10h, calls: [s%d, l%d]}\n", i, i+1, i)
		fmt.Fprintf(&star, "  s%d: {calls: [s%d, s%d, s%d]}\n", i, i*2+1, i*2+2, (i*7+13)%services)
	}
	for _, s := range []string{chain.String(), star.String()} {
		r := linted(t, s)
		if len(r.Unreadable) > 0 {
			t.Fatalf("%v", r.Findings[0])
		}
		if len(r.Findings) == 0 {
			t.Error("nothing found")
		}
	}
}

// layered is a service that calls another that calls a leaf.
func layered(first, second, policy string) string {
	return "b: {attempts: 4, attempt_timeout: 1s}\n  c: {attempts: 4, attempt_timeout: 1s" + policy + "}\n" +
		"services: {a: {server: " + first + ", calls: [b]}, b: {server: " + second + ", calls: [c]}}"
}

// The figures of a sum, line by line.
func TestSumsOfLayers(t *testing.T) {
	for file, want := range map[string]string{
		layered("other", "other", ""):                 "4 16 7 4 1.21 times",
		layered("other", "lull", ""):                  "4 7 16 4 1.21 times",
		layered("other", "lull", ", nested: always"):  "4 16 4 1.21 times",
		layered("other", "other", ", nested: always"): "4 16 16 4 1.21 times",
		// The articles' figures: three layers of four attempts are 64.
		"b: {attempts: 4}\n  c: {attempts: 4}\n  d: {attempts: 4}\nservices: {a: {calls: [b]}, b: {calls: [c]}, c: {calls: [d]}}": "4 16 64 10 4 1.331 times",
		// The layer next to the failure has one attempt, and "don't retry" stops those above.
		strings.Replace(layered("other", "lull", ""), "c: {attempts: 4", "c: {attempts: 1", 1) + "\n": "",
		// If the last layer does not retry, no layer retries a failure with "don't retry".
		"b: {attempts: 4, attempt_timeout: 1s}\n  c: {attempts: 4, attempt_timeout: 1s}\n  d: {attempts: 1}\n" +
			"services: {a: {calls: [b]}, b: {server: lull, calls: [c]}, c: {server: lull, calls: [d]}}": "4 7 7 16 1 1.21 times",
		// A floor is no share: it takes the rate of calls to make it one.
		layered("other", "lull", ", budget: {window: 10s, floor: 1}"):                                     "4 7 16 4",
		layered("other", "lull", ", rate: 10, budget: {window: 10s, floor: 1}"):                           "4 7 16 4 1.32 times",
		"a: {attempts: 4, attempt_timeout: 1s}\nservices: {s: {deliveries: 5, server: lull, calls: [a]}}": "5 8 20",
		// Calls that are made several times, and along several ways.
		strings.Replace(layered("other", "lull", ""), "[c]", "[{dependency: c, times: 2}]", 1):  "4 7 16 4 14 1.21 times",
		strings.Replace(layered("other", "other", ""), "[c]", "[{dependency: c, times: 2}]", 1): "4 16 7 4 32 1.21 times",
		strings.Replace(layered("other", "lull", ""), "[b]", "[b, b]", 1):                       "4 7 16 4 14 1.21 times",
	} {
		got := ""
		for _, f := range layersOf(linted(t, "dependencies:\n  "+file+"\n").Findings) {
			got += totals(f.Sum)
		}
		check.Equal(t, got, want, "%s", file)
	}
}

// lull's server half is no fix where it would not help.
func TestServersThatWouldNotHelp(t *testing.T) {
	for policy, want := range map[string]bool{"": true, ", nested: always": false} {
		if fix := layersOf(linted(t, "dependencies:\n  "+layered("other", "other", policy)+"\n").Findings)[0].Fix.Text; strings.Contains(fix, "server: lull") != want {
			t.Errorf("%s: %s", policy, fix)
		}
	}
}

// A way on which retries are retried is reported before one that brings more, but only adds up.
func TestWhatMultipliesGoesFirst(t *testing.T) {
	const file = `dependencies:
  b: {attempts: 4}
  c: {attempts: 4}
  x: {attempts: 2}
  y: {attempts: 2, nested: always}
  w: {attempts: 1}
  z: {attempts: 4}
services:
  a: {calls: [b, x]}
  b: {server: lull, calls: [c]}
  c: {server: lull, calls: [w]}
  x: {server: lull, calls: [y]}
  y: {server: lull, calls: [w]}
  w: {server: lull, calls: [z]}
`
	for _, direct := range []bool{false, true} {
		data := file
		if direct {
			data = strings.ReplaceAll(file, "[w]", "[z]")
		}
		got := layersOf(linted(t, data).Findings)
		if len(got) != 1 || got[0].Severity != Warning || !strings.Contains(got[0].Message, "may become 7 attempts at z: 3 layers retry (2 × 2 × 4, which is 16 ") {
			t.Errorf("%+v", got)
		}
	}
}

// What has the policy of the defaults is called by its name, and needs one of its own to
// differ from others.
func TestLayersOfDefaults(t *testing.T) {
	got := layersOf(linted(t, "defaults: {attempts: 2, attempt_timeout: 1s}\nservices: {a: {calls: [b]}, b: {calls: [c, d, d]}}\n").Findings)
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	for i, name := range []string{"c", "d"} {
		f := got[i]
		var others string
		for _, s := range f.Sum {
			if strings.Contains(s.What, "all ways from a to "+name) {
				others = s.Total
			}
		}
		if !strings.Contains(f.Message, "may become 4 attempts at "+name+": 2 layers") || others != []string{"", "8"}[i] ||
			!strings.HasPrefix(f.Fix.Text, "add b to the dependencies, with attempts: 1; then one layer retries, next to "+name) || f.Fix.Changes != nil {
			t.Errorf("%+v", f)
		}
	}
	// The queue keeps its retries, so all of them are the same.
	got = layersOf(linted(t, "defaults: {attempts: 2, attempt_timeout: 1s}\nservices: {a: {deliveries: 3, calls: [b]}, b: {calls: [c]}}\n").Findings)
	if len(got) != 1 || !strings.HasPrefix(got[0].Fix.Text, "write attempts: 1 in defaults; then only the queue tries again") || len(got[0].Fix.Changes) != 1 {
		t.Errorf("%+v", got)
	}
}

// A service begins a way if nothing is known of the calls that lead to it.
func TestWayFromACallThatIsNotKnown(t *testing.T) {
	got := layersOf(linted(t, "services: {a: {calls: [b]}, b: {calls: [c]}, c: {calls: [d]}}\n", "dependencies: {c: {attempts: 4}, d: {attempts: 4}}\n").Findings)
	if len(got) != 1 || !strings.HasPrefix(got[0].Message, "one request to b may become 16 attempts at d") {
		t.Errorf("%+v", got)
	}
}
