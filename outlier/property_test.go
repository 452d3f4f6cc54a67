package outlier

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Over random histories of every kind of configuration:
//   - no ejection brings more out than may be; with AtLeastOne there never are more;
//   - ejections and returns take turns for each endpoint, ejected for no less than
//     BaseEjection and no longer than MaxEjection, Jitter and a sweep;
//   - with AtLeastOne one endpoint is always left, unless Envoy's reading is asked for;
//   - every call gets an endpoint, a healthy one but when it must open;
//   - loads add up.
func TestProperties(t *testing.T) {
	t.Parallel()
	ejections := 0
	for seed := range uint64(600 / slower) {
		r := rand.New(rand.NewPCG(seed, 9))
		c := randomConfig(r)
		full := newReference(c).c
		width := full.Interval / time.Duration(full.Sweeps)
		out := map[string]Change{}
		n := 0
		var now time.Duration
		var s *Set
		s = must(t, c, func(ch Change) {
			switch ch.Kind {
			case Ejected:
				ejections++
				if _, is := out[ch.Key]; is {
					t.Errorf("seed %d: %v, but it is", seed, ch)
				}
				out[ch.Key] = ch
				if most := s.permitted(n); len(out) > most {
					t.Errorf("seed %d, %+v: %d of %d are ejected, %d may be", seed, c, len(out), n, most)
				}
				if d := ch.Until - ch.At; d < full.BaseEjection || d > full.MaxEjection+full.Jitter {
					t.Errorf("seed %d, %+v: ejected for %v", seed, c, d)
				}
			case Returned:
				was, is := out[ch.Key]
				if !is {
					t.Errorf("seed %d: %v, but it was not ejected", seed, ch)
				}
				delete(out, ch.Key)
				if ch.Reason == TimePassed && (ch.At < was.Until || ch.At >= was.Until+width) {
					t.Errorf("seed %d: back at %v, due at %v", seed, ch.At, was.Until)
				}
			}
			if ch.At > now {
				t.Errorf("seed %d: a change of %v at %v", seed, ch.At, now)
			}
		})
		type flying struct {
			e   Endpoint
			bad bool
		}
		var air []flying
		var names []string
		bad := map[string]bool{}
		for step := range 1500 {
			now += time.Duration(r.Int64N(int64(full.Interval / 60)))
			if r.IntN(400) == 0 {
				now += time.Duration(r.Int64N(int64(10 * full.Interval)))
			}
			if step%300 == 0 {
				names = nil
				for _, i := range r.Perm(12)[:1+r.IntN(12)] {
					names = append(names, string(rune('a'+i)))
				}
				n = len(names)
				for key := range out {
					if !slices.Contains(names, key) {
						delete(out, key)
					}
				}
				s.Update(now, names)
				clear(bad)
				for range r.IntN(6) {
					bad[anyOf(r, names...)] = true
				}
			}
			var tried Tried
			e, ok := s.Pick(now, r.Uint64, anyOf(r, nil, &tried))
			if !ok || !slices.Contains(names, e.Key()) {
				t.Fatalf("seed %d: picked %q, %v", seed, e.Key(), ok)
			}
			healthy := n - len(out)
			if _, is := out[e.Key()]; is && healthy > 0 && 100*healthy >= c.Panic*n {
				t.Fatalf("seed %d, %+v: picked %q, which is ejected, with %d of %d healthy", seed, c, e.Key(), healthy, n)
			}
			if most := s.permitted(n); full.Limit == AtLeastOne && len(out) > most {
				t.Fatalf("seed %d, %+v: %d of %d are ejected, %d may be", seed, c, len(out), n, most)
			}
			if !c.Unconditional && c.Limit == AtLeastOne && healthy == 0 {
				t.Fatalf("seed %d, %+v: nobody is left", seed, c)
			}
			air = append(air, flying{e, bad[e.Key()] && r.IntN(10) != 0})
			for len(air) > r.IntN(6) {
				i := r.IntN(len(air))
				o := Success
				if air[i].bad {
					o = anyOf(r, FiveXX, GatewayFailure, LocalOrigin)
				}
				s.Done(now, air[i].e, o, r.Uint64)
				air = slices.Delete(air, i, i+1)
			}
			if step%50 == 0 {
				var load int64
				for _, st := range s.Status(now) {
					load += st.Load
				}
				inAir := 0
				for _, f := range air {
					if f.e.h == s.byKey[f.e.Key()] {
						inAir++
					}
				}
				if load != int64(inAir) {
					t.Fatalf("seed %d: %d calls under way, want %d", seed, load, inAir)
				}
			}
		}
	}
	if ejections < 2000/slower {
		t.Errorf("%d ejections: the test does not stir", ejections)
	}
}

func TestPermitted(t *testing.T) {
	for _, v := range []struct {
		percent int
		limit   Limit
		n, want int
	}{
		{10, RoundDown, 9, 0}, {10, RoundDown, 10, 1}, {10, RoundDown, 19, 1}, {10, RoundDown, 20, 2}, {10, RoundDown, 3, 0},
		{10, RoundUp, 1, 0}, {10, RoundUp, 3, 1}, {10, RoundUp, 10, 1}, {10, RoundUp, 11, 2}, {50, RoundUp, 3, 2},
		{10, AtLeastOne, 3, 1}, {10, AtLeastOne, 10, 1}, {10, AtLeastOne, 20, 2}, {0, AtLeastOne, 2, 1}, {0, AtLeastOne, 3, 1}, {0, AtLeastOne, 4, 2},
		{0, AtLeastOne, 5, 2}, {0, AtLeastOne, 1, 0}, {0, AtLeastOne, 0, 0}, {100, AtLeastOne, 5, 4}, {100, RoundDown, 5, 4}, {-1, AtLeastOne, 9, 0},
		{-1, RoundUp, 9, 0}, {7, RoundDown, 1_000_003, 70_000}, {7, RoundUp, 1_000_003, 70_001},
	} {
		r := Config{MaxEjected: v.percent, Limit: v.limit}.rules()
		if got := r.permitted(v.n); got != v.want {
			t.Errorf("%+v: %d", v, got)
		}
	}
	r := EnvoyDefaults()
	r.MaxEjected = 100
	rules := r.rules()
	if got := rules.permitted(5); got != 5 {
		t.Errorf("Envoy may eject all: %d", got)
	}
}
