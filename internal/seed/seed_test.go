package seed

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

// fake is a test that may fail, under any name.
type fake struct {
	testing.TB
	name     string
	failed   bool
	cleanups []func()
	logged   string
}

func (f *fake) Helper()           {}
func (f *fake) Name() string      { return f.name }
func (f *fake) Failed() bool      { return f.failed }
func (f *fake) Cleanup(do func()) { f.cleanups = append(f.cleanups, do) }
func (f *fake) Logf(format string, args ...any) {
	f.logged += fmt.Sprintf(format, args...)
}

func (f *fake) end(failed bool) string {
	f.failed = failed
	for _, do := range f.cleanups {
		do()
	}
	return f.logged
}

func draws(source func() uint64) (all []uint64) {
	for range 5 {
		all = append(all, source())
	}
	return all
}

func TestEveryRunDrawsTheSame(t *testing.T) {
	t.Setenv("LULL_SEED", "")
	a, again, b := draws(Source(&fake{name: "A"})), draws(Source(&fake{name: "A"})), draws(Source(&fake{name: "B"}))
	if !slices.Equal(a, again) || slices.Equal(a, b) {
		t.Errorf("a test draws %v and %v, another %v", a, again, b)
	}
	check.Slices(t, a, draws(Rand(&fake{name: "A"}).Uint64), "Rand draws")
	if a, b := Fresh(&fake{}), Fresh(&fake{}); a == b {
		t.Error("a fresh seed is the same again")
	}
}

func TestTheFailureNamesTheSeed(t *testing.T) {
	t.Setenv("LULL_SEED", "")
	for _, make := range []func(testing.TB) []uint64{
		func(t testing.TB) []uint64 { return draws(Source(t)) },
		func(t testing.TB) []uint64 { return draws(Rand(t).Uint64) },
		func(t testing.TB) []uint64 { return []uint64{Fresh(t)} },
	} {
		t.Setenv("LULL_SEED", "")
		passes, fails := &fake{name: "A"}, &fake{name: "A"}
		make(passes)
		check.Equal(t, passes.end(false), "", "a test that passes logs")
		first := make(fails)
		said := fails.end(true)
		_, seed, ok := strings.Cut(said, "LULL_SEED=")
		if !ok || !strings.Contains(said, "of A are") {
			t.Fatalf("a test that fails logs %q", said)
		}
		t.Setenv("LULL_SEED", seed)
		check.Slices(t, first, make(&fake{name: "another"}), "with the seed %s it draws", seed)
	}
}
