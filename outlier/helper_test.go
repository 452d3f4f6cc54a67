package outlier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/seed"
)

// slower is how much less a long run does.
var slower = 5 / min(seed.Runs(1), 5)

// keys names n endpoints.
func keys(n int) []string {
	k := make([]string, n)
	for i := range k {
		k[i] = fmt.Sprintf("10.0.0.%d:80", i)
	}
	return k
}

// middle is a source that always returns the middle.
func middle() uint64 { return 1 << 63 }

// dice is a source for tests that run one after the other.
var dice = rand.New(rand.NewPCG(8, 8))

// call makes calls at now until one has gone to the endpoint of that key, and ends
// that one so. The others end as neutral, at once.
func call(t testing.TB, s *Set, now time.Duration, key string, o Evidence) {
	t.Helper()
	luck := uint64(0)
	for range 10000 {
		e, ok := s.Pick(now, func() uint64 { luck += 0x9e3779b97f4a7c15; return luck }, nil)
		if !ok {
			break
		}
		if e.Key() == key {
			s.Done(now, e, o, middle)
			return
		}
		s.Done(now, e, Neutral, middle)
	}
	t.Fatalf("no call goes to %q", key)
}

func calls(t testing.TB, s *Set, now time.Duration, key string, n int, o Evidence) {
	t.Helper()
	for range n {
		call(t, s, now, key, o)
	}
}

// sweep makes what is due by now happen.
func sweep(s *Set, now time.Duration) {
	e, _ := s.Pick(now, middle, nil)
	s.Done(now, e, Neutral, middle)
}

// ejected are the keys of those that are.
func ejected(s *Set, now time.Duration) (list []string) {
	for _, st := range s.States(now) {
		if st.Ejected {
			list = append(list, st.Key)
		}
	}
	return list
}

func status(t testing.TB, s *Set, now time.Duration, key string) EndpointState {
	t.Helper()
	for _, st := range s.States(now) {
		if st.Key == key {
			return st
		}
	}
	t.Fatalf("no endpoint %q", key)
	return EndpointState{}
}
