package lull_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

func TestRegistryIsBounded(t *testing.T) {
	r, err := lull.NewRegistry(lull.Policy{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	favourite := r.Get("favourite")
	for i := range 10000 {
		r.Get(fmt.Sprint("host", i))
		if r.Len() > 100 {
			t.Fatalf("%d dependencies in a registry of 100", r.Len())
		}
		if i%10 == 0 && r.Get("favourite") != favourite {
			t.Fatalf("after %d others the dependency in use was forgotten", i)
		}
	}
	// The latest are there, the earliest are not.
	seen := map[string]bool{}
	r.All(func(d *lull.Dependency) bool { seen[d.Name()] = true; return true })
	if !seen["host9999"] || !seen["host9950"] || seen["host0"] || len(seen) != r.Len() {
		t.Errorf("%d are kept, the latest: %v, the first: %v", len(seen), seen["host9999"], seen["host0"])
	}
	n := 0
	r.All(func(*lull.Dependency) bool { n++; return false })
	if n != 1 {
		t.Errorf("All went on after false: %d", n)
	}
}

// A small registry has no room for more than one that is new, and forgets one.
func TestASmallRegistryForgetsOneAtATime(t *testing.T) {
	r, err := lull.NewRegistry(lull.Policy{}, 7)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		r.Get(fmt.Sprint("host", i))
		if want := min(i+1, 7); r.Len() != want {
			t.Errorf("%d dependencies in a registry of 7 that was asked for %d", r.Len(), i+1)
		}
	}
}

// A flood of new keys costs each of them what it needs itself, not a copy of the others.
// The oldest leave, and of many that are equally old no more than there must.
func TestRegistryTakesAFloodOfKeys(t *testing.T) {
	r, err := lull.NewRegistry(lull.Policy{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	const defaultSize = 1024
	keys := make([]string, 5*defaultSize)
	for i := range keys {
		keys[i] = fmt.Sprint("host", i)
	}
	old, flood := keys[:defaultSize], keys[defaultSize:]
	for range 2 { // the second time all of them are equally old
		for _, key := range old {
			r.Get(key)
		}
	}
	r.Get(flood[0])
	if want := defaultSize*7/8 + 1; r.Len() != want {
		t.Errorf("%d are left, want %d", r.Len(), want)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, key := range flood {
		r.Get(key)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(len(flood)); each > 2000 {
		t.Errorf("a new key allocates %d bytes among %d others", each, r.Len())
	}
}

func TestRegistryIsShared(t *testing.T) {
	r, err := lull.NewRegistry(lull.Policy{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	got := make([]*lull.Dependency, 32)
	for i := range got {
		wg.Go(func() { got[i] = r.Get("one") })
	}
	wg.Wait()
	for _, d := range got {
		if d != got[0] {
			t.Fatal("two goroutines got two dependencies for one key")
		}
	}
	if a := testing.AllocsPerRun(100, func() { r.Get("one") }); a != 0 {
		t.Errorf("Get allocates %v times", a)
	}
}

func TestBadRegistries(t *testing.T) {
	if _, err := lull.NewRegistry(lull.Policy{}, -1); err == nil || !strings.Contains(err.Error(), "size is -1: want") {
		t.Errorf("error %v", err)
	}
	var problems engine.Problems
	if _, err := lull.NewRegistry(lull.Policy{Attempts: -1}, 0); !errors.As(err, &problems) {
		t.Errorf("error %v", err)
	}
	if _, err := lull.NewDependency("", lull.Policy{}); err == nil || !strings.Contains(err.Error(), "name") {
		t.Errorf("a dependency without a name: %v", err)
	}
}

func BenchmarkRegistryNewKeys(b *testing.B) {
	r, _ := lull.NewRegistry(lull.Policy{}, 0)
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprint("host", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Get(keys[i%len(keys)])
	}
}

func BenchmarkRegistryGet(b *testing.B) {
	r, _ := lull.NewRegistry(lull.Policy{}, 0)
	r.Get("one")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r.Get("one")
		}
	})
}
