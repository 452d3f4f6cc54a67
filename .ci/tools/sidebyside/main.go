// Command sidebyside compares the speed of the tree with that of a revision. It
// is run from the root of the repository, by .ci/bench.
//
// Both are built, and their benchmarks run in turns, so that what else happens on
// the machine meets both. Each round gives one ratio for each benchmark, of two
// measurements that were made one after the other. The table has the median of
// these ratios and an interval that holds the true median 95 times in 100, from
// their order alone: it assumes nothing of how the noise is distributed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

// What a call that succeeds runs through.
const (
	paths = ". ./lullhttp ./bulkhead ./budget ./breaker ./internal/window"
	names = "^Benchmark(Do|RegistryGet|RoundTrip|TryAcquireRelease|TryAcquireReleaseParallel|SuccessfulCall|Success|SuccessParallel|Add|AddParallel)$"
)

type settings struct {
	rounds              int
	time, cpu, run, pkg string
}

func main() {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 9, "how often each benchmark is run on either side; an interval needs 6")
	flag.StringVar(&s.time, "time", "20ms", "for how long, or how often (100x)")
	flag.StringVar(&s.cpu, "cpu", "1,2", "on how many cores")
	flag.StringVar(&s.run, "run", names, "which benchmarks")
	flag.StringVar(&s.pkg, "packages", paths, "of which packages")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: .ci/bench [flags] REV")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	must.Main("sidebyside", 1, func() error { return compare(ctx, os.Stdout, flag.Arg(0), s) })
}

// A side is one of the two trees.
type side struct {
	dir, bin string
	times    map[string][]float64 // of each benchmark, in ns, by round
}

func compare(ctx context.Context, out io.Writer, rev string, s settings) (err error) {
	defer must.Catch(&err)
	tmp, remove := tool.TempDir("sidebyside")
	defer remove()
	before := side{filepath.Join(tmp, "before"), filepath.Join(tmp, "before.bin"), map[string][]float64{}}
	after := side{".", filepath.Join(tmp, "after.bin"), map[string][]float64{}}
	must.Have(output(ctx, ".", "git", "worktree", "add", "--quiet", "--detach", before.dir, rev))
	defer func() {
		must.Have(output(context.WithoutCancel(ctx), ".", "git", "worktree", "remove", "--force", before.dir))
	}()
	for round := range s.rounds {
		for _, pkg := range strings.Fields(s.pkg) {
			sides := []side{before, after}
			if round%2 == 1 { // whoever runs second finds a warmer machine
				slices.Reverse(sides)
			}
			for _, side := range sides {
				side.measure(ctx, pkg, s)
			}
		}
	}
	return table(out, before.times, after.times)
}

// measure runs the benchmarks of a package once. A package that the side does not
// have gives nothing.
func (d side) measure(ctx context.Context, pkg string, s settings) {
	dir := filepath.Join(d.dir, pkg)
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return
	}
	bin := must.Have(filepath.Abs(filepath.Join(d.bin, pkg, "test")))
	if _, err := os.Stat(bin); err != nil {
		must.Have(output(ctx, d.dir, "go", "test", "-c", "-trimpath", "-buildvcs=false", "-o", bin, "./"+filepath.ToSlash(pkg)))
	}
	text := must.Have(output(ctx, dir, bin, "-test.run=^$", "-test.bench="+s.run, "-test.benchtime="+s.time, "-test.cpu="+s.cpu))
	for name, ns := range parse(text) {
		name = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(pkg))+" ", ". ") + name
		d.times[name] = append(d.times[name], ns)
	}
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	return tool.Output(cmd)
}

// parse returns the ns/op of each benchmark in what a test printed.
func parse(text string) map[string]float64 {
	times := map[string]float64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if at := slices.Index(f, "ns/op"); at > 1 && strings.HasPrefix(f[0], "Benchmark") {
			if ns, err := strconv.ParseFloat(f[at-1], 64); err == nil {
				times[strings.TrimPrefix(f[0], "Benchmark")] = ns
			}
		}
	}
	return times
}

func table(out io.Writer, before, after map[string][]float64) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "before, ns\ttree, ns\tratio\tof which 95 %\t\t  benchmark, -cores")
	all := maps.Clone(before)
	maps.Copy(all, after)
	if len(all) == 0 {
		return errors.New("no benchmark was run")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b, a := before[name], after[name]
		if len(a) != len(b) {
			fmt.Fprintf(w, "%s\t%s\t\t\t\t  %s\n", known(b), known(a), name)
			continue
		}
		ratios := make([]float64, len(a))
		for i := range a {
			ratios[i] = a[i] / b[i]
		}
		lo, hi, ok := interval(ratios)
		span, mark := "too few rounds", ""
		if ok {
			span = fmt.Sprintf("%.2f to %.2f", lo, hi)
		}
		switch {
		case ok && lo > 1:
			mark = "slower"
		case ok && hi < 1:
			mark = "faster"
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%s\t  %s\n", known(b), known(a), median(ratios), span, mark, name)
	}
	return w.Flush()
}

func known(times []float64) string {
	if len(times) == 0 {
		return "none"
	}
	return strconv.FormatFloat(median(times), 'f', 1, 64)
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// interval returns two of xs with the true median between them, at least 95 times
// in 100. Each of n values is below the median with probability one half, so that
// the k lowest and the k highest can be left out if P(Binomial(n, 1/2) < k+1) is at
// most 2.5 %. With less than six values there is no such interval.
func interval(xs []float64) (lo, hi float64, ok bool) {
	n := len(xs)
	p := 1.0
	for range n {
		p /= 2
	}
	k, below := -1, 0.0
	for i := range n {
		if below += p; below > .025 {
			break
		}
		k, p = i, p*float64(n-i)/float64(i+1)
	}
	if k < 0 {
		return 0, 0, false
	}
	s := slices.Sorted(slices.Values(xs))
	return s[k], s[n-1-k], true
}
