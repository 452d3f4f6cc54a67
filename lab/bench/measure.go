package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// A sample is one measurement of one subject.
type sample struct {
	Ns            float64
	Bytes, Allocs int64
}

// A column holds the figures of a subject on so many cores, over all rounds.
type column struct {
	NsMedian, NsMin float64
	Ratio           float64 // of the medians, to the group's reference
	Bytes, Allocs   int64
}

type row struct {
	Subject          string
	Does             feature
	Serial, TwoCores column
	More             *difference // nil: none is asked for
}

// A difference is how much more a subject takes than another. NsMedian is that of the differences within a round, since what disturbs one
// of the two for a while disturbs the other; NsMin is the difference of the minimums.
type difference struct {
	Over             string // the other
	Serial, TwoCores column
}

type result struct {
	group group
	rows  []row
}

// A measurer measures one subject of a group on so many cores.
type measurer func(g group, s subject, cores int) (sample, error)

// measureAll runs the rounds and sums them up. one is measureApart, except in tests.
func measureAll(groups []group, rounds int, one measurer, progress io.Writer) ([]result, error) {
	cores := [...]int{1, 2}
	samples := map[[3]int][]sample{} // by group, subject, cores
	total := 0
	for _, g := range groups {
		total += rounds * len(g.subjects) * len(cores)
	}
	done := 0
	for round := range rounds {
		for gi, g := range groups {
			for i := range g.subjects {
				// Whoever comes after an expensive subject should not always be the same.
				si := (i + round) % len(g.subjects)
				for _, n := range cores {
					s, err := one(g, g.subjects[si], n)
					if err != nil {
						return nil, fmt.Errorf("%s/%s on %d core(s): %w", g.name, g.subjects[si].name, n, err)
					}
					key := [3]int{gi, si, n}
					samples[key] = append(samples[key], s)
					done++
					fmt.Fprintf(progress, "%*d/%d  round %d/%d  %s/%s, %d core(s): %s ns/op\n", len(fmt.Sprint(total)),
						done, total, round+1, rounds, g.name, g.subjects[si].name, n, nanos(s.Ns))
				}
			}
		}
	}
	var results []result
	for gi, g := range groups {
		r := result{group: g}
		for si, s := range g.subjects {
			r.rows = append(r.rows, row{
				Subject: s.name, Does: s.does, Serial: summarise(samples[[3]int{gi, si, 1}]),
				TwoCores: summarise(samples[[3]int{gi, si, 2}]),
			})
		}
		r.setRatios()
		for _, e := range g.extras {
			i, j := g.index(e.subject), g.index(e.over)
			r.rows[i].More = &difference{
				Over: e.over, Serial: subtract(samples[[3]int{gi, i, 1}], samples[[3]int{gi, j, 1}]),
				TwoCores: subtract(samples[[3]int{gi, i, 2}], samples[[3]int{gi, j, 2}]),
			}
		}
		results = append(results, r)
	}
	return results, nil
}

func (r *result) setRatios() {
	i := r.group.index(r.group.reference)
	if i < 0 {
		return
	}
	serial, two := r.rows[i].Serial.NsMedian, r.rows[i].TwoCores.NsMedian
	for i := range r.rows {
		r.rows[i].Serial.Ratio = r.rows[i].Serial.NsMedian / serial
		r.rows[i].TwoCores.Ratio = r.rows[i].TwoCores.NsMedian / two
	}
}

func summarise(samples []sample) column {
	ns := median(samples, func(s sample) float64 { return s.Ns })
	return column{
		NsMedian: ns,
		NsMin:    slices.MinFunc(samples, func(a, b sample) int { return cmp.Compare(a.Ns, b.Ns) }).Ns,
		Bytes:    int64(median(samples, func(s sample) float64 { return float64(s.Bytes) })),
		Allocs:   int64(median(samples, func(s sample) float64 { return float64(s.Allocs) })),
	}
}

// subtract takes over from samples, round by round.
func subtract(samples, over []sample) column {
	rounds := make([]sample, len(samples))
	for i, s := range samples {
		rounds[i] = sample{s.Ns - over[i].Ns, s.Bytes - over[i].Bytes, s.Allocs - over[i].Allocs}
	}
	c := summarise(rounds)
	c.NsMin = summarise(samples).NsMin - summarise(over).NsMin
	return c
}

// median is the middle, or the mean of the two in the middle.
func median(samples []sample, of func(sample) float64) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// measure runs one subject on that many cores for the time of test.benchtime.
func measure(s subject, cores int) (sample, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var failure error
	r := testing.Benchmark(func(b *testing.B) {
		if err := loop(b, s); err != nil {
			failure = err
			b.SkipNow() // ends the measurement; a failure would be printed
		}
	})
	if failure == nil && r.N == 0 {
		failure = errors.New("the benchmark did not run")
	}
	if failure != nil {
		return sample{}, failure
	}
	return sample{
		Ns: float64(r.T.Nanoseconds()) / float64(r.N), Bytes: r.AllocedBytesPerOp(), Allocs: r.AllocsPerOp(),
	}, nil
}

// loop is the benchmark of one subject: on one core a plain loop, on several a
// goroutine for each, all with the subject's one shared state.
func loop(b *testing.B, s subject) (err error) {
	defer must.Catch(&err)
	bind := s.start(b.Cleanup)
	b.ReportAllocs()
	if runtime.GOMAXPROCS(0) == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		call := bind(ctx)
		b.ResetTimer()
		for range b.N {
			if err := call(); err != nil {
				return err
			}
		}
		return nil
	}
	var mu sync.Mutex
	var failure error
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		call := bind(ctx)
		for pb.Next() {
			if err := call(); err != nil {
				mu.Lock()
				failure = err // and on: a body that leaves early hides it behind a complaint of its own
				mu.Unlock()
			}
		}
	})
	return failure
}

// measureApart measures a subject in a process of its own, which is this command
// again, with the flag -subject. In one process for all, those that come later pay
// for what a subject leaves behind: goroutines that have ended but are looked at by
// every collection, pools, timers, a heap that has been large.
func measureApart(per time.Duration) measurer { //outside: no test comes to what it returns
	return func(g group, s subject, cores int) (sample, error) {
		program, err := os.Executable()
		if err != nil {
			return sample{}, err
		}
		var out, complaint bytes.Buffer
		cmd := exec.Command(program, "-subject", g.name+"/"+s.name, "-cores", fmt.Sprint(cores), "-time", per.String())
		cmd.Stdout, cmd.Stderr = &out, &complaint
		if err := cmd.Run(); err != nil {
			if text := strings.TrimSpace(complaint.String()); text != "" {
				return sample{}, errors.New(strings.TrimPrefix(text, "bench: "))
			}
			return sample{}, err
		}
		var got sample
		return got, json.Unmarshal(out.Bytes(), &got)
	}
}

// measureHere is the other side of measureApart: it measures the subject of that
// path, "group/subject", in this process.
func measureHere(groups []group, path string, cores int, out io.Writer) error {
	if cores < 1 {
		return fmt.Errorf("-cores is %d: want 1 or more", cores)
	}
	name, part, _ := strings.Cut(path, "/")
	for _, g := range groups {
		if i := g.index(part); i >= 0 && g.name == name {
			s, err := measure(g.subjects[i], cores)
			if err != nil {
				return err
			}
			return json.NewEncoder(out).Encode(s)
		}
	}
	return fmt.Errorf("-subject %q: there is none", path)
}
