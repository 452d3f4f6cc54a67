package stripe

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
)

func TestCount(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for cores, want := range map[int]int{1: 2, 2: 4, 3: 8, 4: 8, 31: 64, 32: 64, 100: 64} {
		runtime.GOMAXPROCS(cores)
		check.Equal(t, Count(), want, "%d cores: stripes", cores)
	}
}

// A seat that moves comes to every stripe once before it comes to one again.
func TestMoveReachesEveryStripe(t *testing.T) {
	for s := range Seat(len(moves)) {
		for n := 2; n <= maxStripes; n <<= 1 {
			seen := map[int]bool{}
			for range n {
				at := s.Of(n)
				if at < 0 || at >= n || seen[at] {
					t.Fatalf("seat %d of %d stripes: comes to %d again or out of range", s, n, at)
				}
				seen[at] = true
				s.Move()
			}
		}
	}
}

// Goroutines that run at once, in any seats, are apart after few lost steps: each
// pair on one stripe makes one of the two lose a step, whichever.
func TestThoseThatRunAtOnceComeApart(t *testing.T) {
	from := seed.Fresh(t)
	r := rand.New(rand.NewPCG(from, 1))
	for range 2000 {
		cores := 2 << r.IntN(5)
		n := 2 * cores
		seats := r.Perm(len(moves))[:cores]
		lost := 0
	again:
		for i, a := range seats {
			for _, b := range seats[:i] {
				if Seat(a).Of(n) != Seat(b).Of(n) {
					continue
				}
				if lost++; lost > 20*cores {
					t.Fatalf("seed %d: %d goroutines lost %d steps and still share stripes", from, cores, lost)
				}
				if r.IntN(2) == 0 {
					a = b
				}
				Seat(a).Move()
				goto again
			}
		}
	}
}

// Goroutines have stacks of their own, and so seats.
func TestSeatsTellGoroutinesApart(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a stack that it shrinks moves
	const n = 64
	seats, end := make(chan Seat), make(chan struct{})
	for range n {
		go func() {
			grow(16)
			seats <- Here()
			<-end // its stack is nobody else's until then
		}()
	}
	seen := map[Seat]bool{}
	for range n {
		seen[<-seats] = true
	}
	close(end)
	if len(seen) < n*3/4 {
		t.Errorf("%d goroutines have %d seats", n, len(seen))
	}
}

// grow makes the stack as large as anything here needs: one that grows later moves, and
// leaves its place to another goroutine.
//
//go:noinline
func grow(n int) (sum byte) {
	var room [1 << 10]byte
	for i := range room {
		room[i] = byte(n + i)
	}
	if n > 0 {
		sum = grow(n - 1)
	}
	return sum + room[n]
}

func TestNoAllocations(t *testing.T) {
	check.Equal(t, testing.AllocsPerRun(100, func() { s := Here(); s.Of(4); s.Move() }), 0, "allocations")
}

func BenchmarkHere(b *testing.B) {
	for b.Loop() {
		Here().Of(4)
	}
}
