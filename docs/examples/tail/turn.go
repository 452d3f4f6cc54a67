package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A turn holds the counts of each tenth of a second, while all was well, while
// every request was slow, and when all was well again.
type turn struct{ before, slow, after []counts }

type counts struct{ calls, hedges int64 }

func sum(tenths []counts) (calls, hedges int64) {
	for _, t := range tenths {
		calls += t.calls
		hedges += t.hedges
	}
	return calls, hedges
}

// turn makes calls without a pause while the backend becomes slow and recovers, and
// prints a line for each second.
func (s setting) turn(b *backend, l *load, out io.Writer) (t turn, err error) {
	fmt.Fprintf(out, "%6s  %-8s %40s %9s %12s\n", "second", "requests", "hedges in each tenth of it", "in all", "extra")
	ended := make(chan error, 1)
	start := time.Now()
	calls, hedges := l.calls.Load(), b.hedges.Load()
	go func() {
		_, err := l.run(s.before + s.slow + s.after)
		ended <- err
	}()
	n := 0
	count := func(duration time.Duration) (tenths []counts) {
		for range duration / (time.Second / 10) {
			n++
			time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / 10)))
			c, h := l.calls.Load(), b.hedges.Load()
			tenths = append(tenths, counts{c - calls, h - hedges})
			calls, hedges = c, h
			if len(tenths)%10 == 0 {
				state := "as usual"
				if b.allSlow.Load() {
					state = "all SLOW"
				}
				fmt.Fprintf(out, "%6d  %s %s\n", n/10, state, line(tenths[len(tenths)-10:]))
			}
		}
		return tenths
	}
	t.before = count(s.before)
	b.allSlow.Store(true)
	t.slow = count(s.slow)
	b.allSlow.Store(false)
	t.after = count(s.after)
	return t, <-ended
}

// firstHedge and lastHedge are after how long the first was seen, and the last; zero
// if there was none.
func firstHedge(tenths []counts) time.Duration {
	for i, t := range tenths {
		if t.hedges > 0 {
			return time.Duration(i+1) * time.Second / 10
		}
	}
	return 0
}

func lastHedge(tenths []counts) (last time.Duration) {
	for i, t := range tenths {
		if t.hedges > 0 {
			last = time.Duration(i+1) * time.Second / 10
		}
	}
	return last
}

// line returns the counts of one second as text.
func line(tenths []counts) string {
	var each strings.Builder
	for _, t := range tenths {
		fmt.Fprintf(&each, "%4d", t.hedges)
	}
	calls, hedges := sum(tenths)
	return fmt.Sprintf("%s %9d %10.1f %%", each.String(), hedges, percent(hedges, calls))
}

func percent(part, of int64) float64 { return 100 * float64(part) / float64(max(of, 1)) }
