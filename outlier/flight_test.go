package outlier

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// A landing is the end of a call that is under way.
type landing struct {
	at time.Duration
	e  Endpoint
	o  Evidence
}

type landings []landing

func (l landings) Len() int           { return len(l) }
func (l landings) Less(i, j int) bool { return l[i].at < l[j].at }
func (l landings) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *landings) Push(x any)        { *l = append(*l, x.(landing)) }
func (l *landings) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// A flight is calls that arrive at random (Poisson), at so many a second, from one
// time to another. Each endpoint answers as serve returns.
type flight struct {
	set      *Set
	perSec   float64
	from, to time.Duration
	serve    func(key string, now time.Duration, r *rand.Rand) (Evidence, time.Duration)
	seed     uint64
}

// fly returns how many calls ended each way, for each endpoint, and all together
// under the empty key.
func (f flight) fly(t testing.TB) map[string]map[Evidence]int {
	t.Helper()
	r := rand.New(rand.NewPCG(f.seed, 11))
	var air landings
	seen := map[string]map[Evidence]int{"": {}}
	land := func(until time.Duration) {
		for len(air) > 0 && air[0].at <= until {
			l := heap.Pop(&air).(landing)
			f.set.Done(l.at, l.e, l.o, r.Uint64)
			if seen[l.e.Key()] == nil {
				seen[l.e.Key()] = map[Evidence]int{}
			}
			seen[l.e.Key()][l.o]++
			seen[""][l.o]++
		}
	}
	gap := float64(time.Second) / f.perSec
	for now := f.from; now < f.to; now += time.Duration(r.ExpFloat64() * gap) {
		land(now)
		e, ok := f.set.Pick(now, r.Uint64, nil)
		if !ok {
			t.Fatal("no endpoint")
		}
		o, took := f.serve(e.Key(), now, r)
		heap.Push(&air, landing{now + took, e, o})
	}
	land(f.to + time.Hour)
	return seen
}
