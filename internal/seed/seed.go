// Package seed gives tests their random draws, each from a seed that the failure names.
//
// [Source] and [Rand] draw the same in every run, so a test passes always or never. [Fresh]
// is for what must hold under every seed: it differs from run to run. With LULL_SEED set,
// all of them draw from that: it repeats a failure, and a loop over it tries other draws.
package seed

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Source returns a source of random bits, safe for concurrent use. Its draws depend on the
// test's name. Each call returns one that starts anew.
func Source(t testing.TB) func() uint64 {
	t.Helper()
	return Rand(t).Uint64
}

// Rand is Source with the methods of a rand.Rand.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	return rand.New(&locked{src: rand.NewPCG(seedFor(t, h.Sum64), 0)})
}

// locked is a source that several goroutines may use.
type locked struct {
	mu  sync.Mutex
	src rand.Source
}

func (l *locked) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.src.Uint64()
}

// Fresh returns a seed that differs from run to run.
func Fresh(t testing.TB) uint64 {
	t.Helper()
	return seedFor(t, rand.Uint64)
}

type usedSeed struct {
	t    testing.TB
	seed uint64
}

var uses sync.Map // of usedSeed, so that each is logged once

// seedFor returns the seed in LULL_SEED. Without LULL_SEED it calls otherwise. A test that fails
// or panics logs the seed. (Logs of a test that passes are printed with -v only.)
func seedFor(t testing.TB, otherwise func() uint64) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("LULL_SEED"), 10, 64)
	if err != nil {
		seed = otherwise()
	}
	this := usedSeed{t, seed}
	if _, again := uses.LoadOrStore(this, true); again {
		return seed
	}
	t.Cleanup(func() {
		uses.Delete(this)
		if _, test := t.(*testing.T); test || t.Failed() {
			t.Logf("the random draws of %s are those of LULL_SEED=%d", t.Name(), seed)
		}
	})
	return seed
}
