package outlier

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestUpdateKeepsWhatItKnows(t *testing.T) {
	s := must(t, Config{Unconditional: true})
	s.Update(0, []string{"a", "b", "c", "d"})
	calls(t, s, 0, "b", 5, FiveXX)
	calls(t, s, 0, "c", 4, FiveXX)
	calls(t, s, 0, "d", 3, Success)
	before := map[string]Status{}
	for _, st := range s.Status(0) {
		before[st.Key] = st
	}
	s.Update(0, []string{"d", "x", "c", "b", "x", "d"})
	var order string
	for _, st := range s.Status(0) {
		order += st.Key
		want := before[st.Key]
		if st.Key == "x" {
			want = Status{Key: "x"}
		}
		if st != want {
			t.Errorf("%+v, want %+v", st, want)
		}
	}
	if order != "dxcb" {
		t.Errorf("order %s", order)
	}
	// One more failure, and c has five in a row.
	call(t, s, 0, "c", FiveXX)
	if got := ejected(s, 0); !slices.Equal(got, []string{"c", "b"}) {
		t.Errorf("ejected %v", got)
	}
	// Who goes is forgotten.
	s.Update(0, []string{"d", "x", "c"})
	s.Update(0, []string{"d", "x", "c", "b"})
	if st := status(t, s, 0, "b"); st != (Status{Key: "b"}) {
		t.Errorf("b is not new: %+v", st)
	}
}

// A call that is under way when its endpoint goes may end in any way.
func TestDoneAfterRemoval(t *testing.T) {
	for _, unconditional := range []bool{false, true} {
		heard := 0
		s := must(t, Config{Unconditional: unconditional, MaxEjected: 100}, func(Change) { heard++ })
		s.Update(0, []string{"a"})
		var out []Endpoint
		for range 30 {
			e, _ := s.Pick(0, nil, nil)
			out = append(out, e)
		}
		s.Update(0, []string{"b"})
		s.Update(0, []string{"a", "b"})
		for i, e := range out {
			if e.Key() != "a" {
				t.Fatal(e.Key())
			}
			s.Done(time.Second, e, Outcome(1+i%3), nil)
		}
		for _, st := range s.Status(time.Second) {
			if st != (Status{Key: st.Key}) {
				t.Errorf("%+v, want nothing", st)
			}
		}
		if heard > 0 {
			t.Errorf("%d changes", heard)
		}
	}
}

// When the set shrinks, as many come back as are too many, the soonest first.
func TestShrinking(t *testing.T) {
	var got []Change
	c := Config{Unconditional: true, Jitter: -1}
	s := must(t, c, func(c Change) { got = append(got, c) })
	s.Update(0, keys(10))
	for i, key := range keys(5) {
		calls(t, s, time.Duration(5-i)*time.Second/10, key, 5, FiveXX) // the last is the first to come back
	}
	got = nil
	now := time.Second / 2
	s.Update(now, slices.Concat(keys(5), keys(10)[7:]))
	if want := keys(4); !slices.Equal(ejected(s, now), want) {
		t.Errorf("ejected of 8: %v, want %v", ejected(s, now), want)
	}
	s.Update(now, keys(5))
	if want := keys(2); !slices.Equal(ejected(s, now), want) {
		t.Errorf("ejected of 5: %v, want %v", ejected(s, now), want)
	}
	if len(got) != 3 || got[0].Key != keys(5)[4] || got[0].Reason != Shrunk || got[0].Kind != Returned || got[0].At != now || got[2].Key != keys(5)[2] {
		t.Errorf("%+v", got)
	}
	// Ejected ones that leave make room.
	s.Update(now, keys(5)[2:])
	if len(ejected(s, now)) != 0 {
		t.Error("who left is ejected")
	}
	calls(t, s, now, keys(5)[3], 5, FiveXX)
	if !slices.Equal(ejected(s, now), keys(5)[3:4]) {
		t.Errorf("of the 3 that are left: %v", ejected(s, now))
	}

	// By Envoy's reading nobody comes back.
	for _, limit := range []Limit{RoundDown, RoundUp} {
		c.Limit = limit
		s = must(t, c)
		s.Update(0, keys(10))
		for _, key := range keys(5) {
			calls(t, s, 0, key, 5, FiveXX)
		}
		s.Update(0, keys(6))
		if !slices.Equal(ejected(s, 0), keys(5)) {
			t.Errorf("%v: ejected %v", limit, ejected(s, 0))
		}
	}
}

// Updates that change nothing cost no memory and forget nothing.
func TestUpdateWithTheSame(t *testing.T) {
	s := must(t, Config{})
	k := keys(50)
	s.Update(0, k)
	e, _ := s.Pick(0, dice.Uint64, nil)
	if n := testing.AllocsPerRun(100, func() { s.Update(0, k) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if st := status(t, s, 0, e.Key()); st.Load != 1 {
		t.Errorf("%+v", st)
	}
}

// A failure that is counted just before its endpoint goes finds it gone when it looks
// at the row.
func TestARowOfOneThatIsGone(t *testing.T) {
	s := must(t, Config{Choice: RoundRobin, Consecutive: 30, MaxEjected: 100}, func(c Change) { t.Error(c) })
	s.Update(0, []string{"a", "b", "c"})
	h := s.byKey["a"]
	calls(t, s, 0, "a", 29, FiveXX)
	calls(t, s, 0, "b", 1000, Success)
	s.Update(0, []string{"b", "c"})
	s.failed(0, h, FiveXX, middle)
	if s.ejected != 0 || h.ejected {
		t.Error("one that is gone was ejected")
	}
}

// Quiet time begins at the epoch at the earliest: an endpoint that an Update has taken
// back before it has not been well for ever.
func TestShrinkingBeforeTheEpoch(t *testing.T) {
	for _, before := range []time.Duration{-time.Hour, math.MinInt64} {
		for quiet, want := range map[time.Duration]time.Duration{time.Second: 2 * DefaultBaseEjection, DefaultInterval: DefaultBaseEjection} {
			s := must(t, Config{Unconditional: true, Jitter: -1})
			s.Update(0, keys(4))
			for _, key := range keys(2) {
				calls(t, s, 0, key, 5, FiveXX)
			}
			s.Update(before, keys(2)) // one has to come back
			if got := ejected(s, 0); !slices.Equal(got, keys(2)[1:]) {
				t.Fatalf("ejected %v", got)
			}
			s.Update(before, append(keys(4)[2:], keys(1)[0]))
			sweep(s, quiet)
			calls(t, s, quiet, keys(1)[0], 5, FiveXX)
			if got := status(t, s, quiet, keys(1)[0]).Until - quiet; got != want {
				t.Errorf("back at %v, ejected at %v for %v, want %v", before, quiet, got, want)
			}
		}
	}
}
