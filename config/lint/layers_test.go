package lint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/config"
)

// The articles' figures: three layers of four attempts are 64.
func TestThreeLayersOfFourAttempts(t *testing.T) {
	f := &config.PolicyFile{
		Dependencies: []config.Dependency{{Name: "b", Policy: lull.Policy{Attempts: 4}}, {Name: "c", Policy: lull.Policy{Attempts: 4}}, {Name: "d", Policy: lull.Policy{Attempts: 4}}},
		Services: []config.Service{
			{Name: "a", Calls: []config.Edge{{Dependency: "b"}}},
			{Name: "b", Calls: []config.Edge{{Dependency: "c"}}},
			{Name: "c", Calls: []config.Edge{{Dependency: "d"}}},
		},
	}
	got := layersOf(findings(f))
	if len(got) != 1 || !strings.Contains(got[0].Message, "64 attempts at d: 3 layers retry (4 × 4 × 4)") {
		t.Fatalf("%+v", got)
	}
	var totals []string
	for _, s := range got[0].Sum {
		totals = append(totals, s.Total)
	}
	if want := "4 16 64 10 4 1.331 times"; strings.Join(totals, " ") != want {
		t.Errorf("%v, want %s", totals, want)
	}
}

func layersOf(all []Finding) (out []Finding) {
	for _, f := range all {
		if f.Rule == "retries-in-layers" {
			out = append(out, f)
		}
	}
	return out
}

// What the finding says of lull's own rule is what the engine does: attempts at the bottom
// of layers all of which fail, with servers that know which attempt they are at work on. The
// server does not pass "don't retry" up, as if its answers came too late.
func TestNestedIsWhatTheEngineDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 300 {
		n := 1 + r.IntN(4)
		var way []layer
		var deps []*lull.Dependency
		for i := range n {
			p := lull.Policy{
				Attempts: 1 + r.IntN(4), Nested: one(r, lull.NestedNever, lull.NestedNever, lull.NestedAlways),
				Backoff: backoff.Schedule{Kind: backoff.Constant}, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
			}
			d, err := lull.NewDependency(fmt.Sprint(i), p)
			if err != nil {
				t.Fatal(err)
			}
			deps = append(deps, d)
			way = append(way, layer{attempts: uint64(p.Attempts), nested: p.Nested})
		}
		down := lull.Transient(errors.New("down"))
		bottom := uint64(0)
		var serve func(ctx context.Context, i int) error
		serve = func(ctx context.Context, i int) error {
			if i == n {
				bottom++
				return down
			}
			above := lull.InboundFrom(ctx).Attempt() - 1
			lull.Run(ctx, deps[i], func(ctx context.Context) error {
				a, _ := lull.AttemptFrom(ctx)
				in, _ := lull.WithInbound(context.Background(), a.Number+above, 0)
				return serve(in, i+1)
			})
			return down
		}
		serve(context.Background(), 0)
		if got := nested(way); got != bottom {
			t.Fatalf("%+v: said to be %d, and is %d", way, got, bottom)
		}
	}
}

// The worst way to each leaf is found, compared with trying all ways.
func TestWorstWayIsFound(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 4))
	for range 500 {
		// Services a, b, c, ... call only those after them; the last letters are leaves.
		n := 3 + r.IntN(5)
		name := func(i int) string { return string(rune('a' + i)) }
		f := &config.PolicyFile{}
		for i := range n {
			f.Dependencies = append(f.Dependencies, config.Dependency{Name: name(i), Policy: lull.Policy{Attempts: 1 + r.IntN(4)}})
		}
		calls := map[int][]int{}
		for i := range n - 1 {
			s := config.Service{Name: name(i), Deliveries: one(r, 0, 0, 3)}
			for j := i + 1; j < n; j++ {
				if r.IntN(2) == 0 {
					calls[i] = append(calls[i], j)
					s.Calls = append(s.Calls, config.Edge{Dependency: name(j)})
				}
			}
			f.Services = append(f.Services, s)
		}
		called := map[int]bool{}
		for _, to := range calls {
			for _, j := range to {
				called[j] = true
			}
		}
		worst := map[string]int{} // of the ways with two layers or more
		var walk func(i, product, layers int, all map[string]int)
		walk = func(i, product, layers int, all map[string]int) {
			for _, j := range calls[i] {
				p, l := product*f.Dependencies[j].Policy.Attempts, layers
				if f.Dependencies[j].Policy.Attempts > 1 {
					l++
				}
				if len(calls[j]) == 0 && p > all[name(j)] {
					all[name(j)] = p
				}
				walk(j, p, l, all)
			}
		}
		for i := range n - 1 {
			if d := f.Services[i].Deliveries; !called[i] || d > 1 {
				walk(i, max(d, 1), 0, worst)
			}
		}
		said := map[string]string{}
		for _, g := range layersOf(findings(f)) {
			said[g.about+strings.TrimSuffix(strings.TrimPrefix(g.Path, "dependencies."), ".attempts")] = g.Message
		}
		for leaf, want := range worst {
			if m, ok := said[leaf]; ok && !strings.Contains(m, fmt.Sprintf("may become %d attempts at %s:", want, leaf)) {
				t.Fatalf("seed %d: %+v\n%s: want %d: %s", seed, f, leaf, want, m)
			} else if !ok && want > 12 { // more than one layer can do: deliveries of 3 and 4 attempts are 12, and two
				t.Fatalf("seed %d: %+v\nnothing is said of %d attempts at %s", seed, f, want, leaf)
			}
		}
	}
}

// Circles end, whatever they look like, and are reported with the way round.
func TestCircles(t *testing.T) {
	for calls, want := range map[string]string{
		"a>a":             "a → a",
		"a>b b>a":         "b → a → b",
		"a>b b>c c>b":     "c → b → c",
		"a>b b>c c>d d>a": "d → a → b → c → d",
		"a>b a>c b>d c>d": "",
	} {
		f := &config.PolicyFile{}
		services := map[string]int{}
		for c := range strings.FieldsSeq(calls) {
			from, to, _ := strings.Cut(c, ">")
			for _, s := range []string{from, to} {
				if _, ok := services[s]; !ok {
					services[s] = len(f.Services)
					f.Services = append(f.Services, config.Service{Name: s})
					f.Dependencies = append(f.Dependencies, config.Dependency{Name: s, Policy: lull.Policy{Attempts: 1}})
				}
			}
			s := &f.Services[services[from]]
			s.Calls = append(s.Calls, config.Edge{Dependency: to})
		}
		var got []string
		for _, g := range findings(f) {
			if g.Rule == "call-cycle" {
				got = append(got, strings.TrimPrefix(g.Message, "calls go in a circle: "))
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %v, want %s", calls, got, want)
		}
	}
}

// A graph as large as a file can hold is done in a moment.
func TestLargeGraphs(t *testing.T) {
	var chain, star strings.Builder
	chain.WriteString("defaults: {attempts: 2, attempt_timeout: 1s}\nservices:\n")
	star.WriteString("defaults: {attempts: 2, attempt_timeout: 1s}\nservices:\n")
	for i := range 9000 {
		fmt.Fprintf(&chain, "  s%d: {slo: 10h, calls: [s%d, l%d]}\n", i, i+1, i)
		fmt.Fprintf(&star, "  s%d: {calls: [s%d, s%d, s%d]}\n", i, i*2+1, i*2+2, (i*7+13)%9000)
	}
	for _, s := range []string{chain.String(), star.String()} {
		r := check(t, s)
		if len(r.Unreadable) > 0 {
			t.Fatalf("%v", r.Findings[0])
		}
		if len(r.Findings) == 0 {
			t.Error("nothing found")
		}
	}
}
