package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

func TestParse(t *testing.T) {
	got := parse("goos: linux\nBenchmarkDo/zero-2   \t 100\t 93.5 ns/op\t 0 B/op\t 0 allocs/op\nBenchmarkAdd 1 7 ns/op\nBenchmarkBroken\nPASS\n")
	if len(got) != 2 || got["Do/zero-2"] != 93.5 || got["Add"] != 7 {
		t.Errorf("%v", got)
	}
}

// The ranks are those of the tables of the sign test.
func TestIntervalRanks(t *testing.T) {
	for n, want := range map[int]int{0: 0, 5: 0, 6: 1, 8: 1, 9: 2, 10: 2, 12: 3, 15: 4, 20: 6, 25: 8} {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(n - i) // 1 to n
		}
		lo, hi, ok := interval(xs)
		if ok != (want > 0) || ok && (lo != float64(want) || hi != float64(n+1-want)) {
			t.Errorf("of %d: %v to %v (%v), want ranks %d and %d", n, lo, hi, ok, want, n+1-want)
		}
	}
}

func TestIntervalHoldsTheMedian(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const times = 20_000
	missed := 0
	for range times {
		xs := make([]float64, 12)
		for i := range xs {
			xs[i] = r.ExpFloat64() // its median is ln 2
		}
		if lo, hi, _ := interval(xs); lo > .693147 || hi < .693147 {
			missed++
		}
	}
	if share := float64(missed) / times; share > .05 || share < .02 { // 3.9 % with twelve
		t.Errorf("seed 1, 2: %.3f of the intervals miss the median", share)
	}
}

func TestTable(t *testing.T) {
	six := func(x float64) []float64 { return []float64{x, x, x, x, x, x} }
	var out strings.Builder
	must.Succeed(table(&out, map[string][]float64{"same": six(2), "slow": six(1), "fast": six(4), "gone": six(5), "few": {1}},
		map[string][]float64{"same": six(2), "slow": six(3), "fast": six(2), "new": six(6), "few": {2}}))
	for _, want := range []string{
		"2.0 2.0 1.00 1.00 to 1.00 same", "1.0 3.0 3.00 3.00 to 3.00 slower slow", "4.0 2.0 0.50 0.50 to 0.50 faster fast",
		"5.0 none gone", "none 6.0 new", "1.0 2.0 2.00 too few rounds few",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if err := table(&out, nil, nil); err == nil {
		t.Error("a comparison of nothing is no mistake")
	}
}

// A whole comparison, of a repository whose tree does four times as much as its
// only commit.
func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	test := func(n string) string {
		return "package a\nimport \"testing\"\nvar x int\nfunc BenchmarkSpin(b *testing.B) {\nfor b.Loop() {\nfor i := range " + n + " {\nx ^= i\n}\n}\n}\n"
	}
	tool.WriteFile("go.mod", "module example.test\ngo 1.26\n")
	tool.WriteFile("a/a_test.go", test("50000"))
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-m", "x"}} {
		must.Have(output(t.Context(), ".", "git", args...))
	}
	tool.WriteFile("a/a_test.go", test("200000"))
	tool.WriteFile("b/b_test.go", strings.Replace(test("10"), "package a", "package b", 1))
	var out strings.Builder
	must.Succeed(compare(t.Context(), &out, "HEAD", settings{rounds: 6, time: "20x", cpu: "1", run: ".", pkg: "a b"}))
	for _, want := range []string{"a Spin", "b Spin", "none"} { // which is quicker is the machine's affair
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if trees, _ := output(t.Context(), ".", "git", "worktree", "list"); strings.Count(trees, "\n") != 1 {
		t.Errorf("left behind:\n%s", trees)
	}
	if err := compare(t.Context(), &out, "nothing", settings{}); err == nil {
		t.Error("compared with a revision that does not exist")
	}
}
