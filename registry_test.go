package lull_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/must"
)

// A new key allocates what it needs itself, not a copy of the others. The oldest leave, and of
// many equally old ones only as many as must.
func TestRegistryTakesAFloodOfKeys(t *testing.T) {
	r := must.Have(lull.NewRegistry(lull.Policy{}, 0))
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
