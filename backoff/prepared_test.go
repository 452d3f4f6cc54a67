package backoff

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A prepared schedule is the schedule, at every retry and for every draw.
func TestPreparedIsTheSchedule(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] }
	for range 20_000 {
		s := Schedule{
			Kind: Kind(r.IntN(5)), Jitter: Jitter(r.IntN(5)),
			Base: pick(0, 1, time.Millisecond, time.Second), Cap: pick(0, time.Millisecond, time.Minute),
			Floor: pick(0, 0, time.Microsecond), Factor: []float64{0, 1, 1.5, 3}[r.IntN(4)], FastFirst: r.IntN(3) == 0,
		}
		p := s.Prepare()
		for retry := -1; retry < 12; retry++ {
			word, prev := r.Uint64(), time.Duration(r.Int64N(int64(time.Minute)))
			draw := func() uint64 { return word }
			if got, want := p.Delay(retry, prev, draw), s.Delay(retry, prev, draw); got != want {
				t.Fatalf("%+v, retry %d: prepared %v, else %v", s, retry, got, want)
			}
			if wait, ceiling := p.Draw(retry, prev, draw); wait != s.Delay(retry, prev, draw) || ceiling != s.Ceiling(retry) {
				t.Fatalf("%+v, retry %d: drawn %v of %v, else %v of %v", s, retry, wait, ceiling, s.Delay(retry, prev, draw), s.Ceiling(retry))
			}
			if got, want := p.Ceiling(retry), s.Ceiling(retry); got != want {
				t.Fatalf("%+v, retry %d: ceiling %v, else %v", s, retry, got, want)
			}
		}
	}
}
