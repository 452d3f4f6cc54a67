package breaker

import (
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func TestPlanMakesBreakersApart(t *testing.T) {
	var all, own []CircuitState
	p := must.Have(Prepare(first(Config{}), nil, func(c Change) { all = append(all, c.To) }))
	one := p.New(nil, func(c Change) { own = append(own, c.To) }, nil)
	two := p.New()
	fails(one, 0, 0)
	check.Equal(t, two.State(0), Closed, "the other breaker of the plan")
	two.ForceOpen(0)
	two.ForceClosed(0)
	check.Slices(t, all, []CircuitState{Open, Open, Closed}, "the plan's listener heard")
	check.Slices(t, own, []CircuitState{Open}, "the breaker's listener heard")
}

func TestPlanOff(t *testing.T) {
	p := must.Have(Prepare(Config{Off: true}))
	b := p.New(func(c Change) { t.Errorf("heard %v", c) })
	b.ForceOpen(0)
	check.Equal(t, run(b, 0, 100, Failure), 100, "admitted, of 100")
	if p, err := Prepare(Config{Probes: -1}); p != nil || err == nil {
		t.Errorf("a plan of a wrong configuration: %v, %v", p, err)
	}
}

func TestProbesList(t *testing.T) {
	var p probes
	for round := range 3 {
		for id := uint32(1); id <= 5; id++ {
			p.add(probe{id: id})
			if p.placesTaken(true) != int(id) {
				t.Fatalf("round %d: %d probes after adding %d", round, p.placesTaken(true), id)
			}
		}
		for i, id := range []uint32{3, 1, 5, 2, 4} {
			q, was := p.remove(id)
			_, again := p.remove(id)
			_, never := p.remove(9)
			if !was || q.id != id || again || never {
				t.Fatalf("round %d: probe %d was out just once", round, id)
			}
			if p.placesTaken(true) != 4-i {
				t.Fatalf("round %d: %d probes after removing %d", round, p.placesTaken(true), i+1)
			}
		}
	}
	p.add(probe{id: 1, since: 7})
	p.add(probe{id: 2, since: 5})
	p.add(probe{id: 3, since: 9})
	check.Equal(t, p.oldest(), 5, "oldest started at")
	p.remove(2)
	check.Equal(t, p.oldest(), 7, "then")
	p.clear()
	check.Equal(t, p.placesTaken(true), 0, "probes in an empty list")
}

// The numbers are those of SplitMix64, as published with its source (Vigna).
func TestNextRandomIsSplitMix64(t *testing.T) {
	for luck, want := range map[uint64]uint64{0: 0xe220a8397b1dcdaf, 0x9e3779b97f4a7c15: 0x6e789e6aa1b965f4, 1234567: 6457827717110365317} {
		check.Equal(t, nextRandom(luck), want, "nextRandom(%#x)", luck)
	}
}

// A share of nothing is never reached.
func TestAShareOfNothing(t *testing.T) {
	for _, c := range [][2]int64{{0, 0}, {1, 0}, {0, 1}, {-1, 1}, {1, -1}} {
		if ratio(1).reached(c[0], c[1]) {
			t.Errorf("%d of %d reaches a share", c[0], c[1])
		}
	}
	if ratio(0).reached(1, 1) {
		t.Error("no share is reached")
	}
}

func TestOff(t *testing.T) {
	for name, b := range map[string]*Breaker{"Off": must.Have(New(Config{Off: true})), "zero": {}} {
		b.ForceOpen(0)
		b.ForceClosed(0)
		b.Auto(0)
		b.ForceOpen(0)
		check.Equal(t, run(b, 0, 1000, Failure), 1000, "%s: admitted, of 1000", name)
		calls, failures, _ := b.Counts(0)
		if s := b.State(0); s != Closed || b.RetryAt(0) != 0 || calls != 0 || failures != 0 || b.counted.Load() != nil {
			t.Errorf("%s: %v, %d, %d", name, s, calls, failures)
		}
	}
}
