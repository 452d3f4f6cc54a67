package outlier

import (
	"math"
	"testing"
	"time"
)

// tape reads the fuzzer's bytes as whatever is wanted next, and zeros at its end.
type tape []byte

func (t *tape) byte() byte {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return b
}

func (t *tape) int64() (v int64) {
	for range 8 {
		v = v<<8 | int64(t.byte())
	}
	return v
}

// int is mostly small.
func (t *tape) int() int {
	if b := t.byte(); b < 250 {
		return int(b) - 10
	}
	return int(t.int64())
}

// duration is often one at the edge.
func (t *tape) duration() time.Duration {
	edges := []time.Duration{0, 1, -1, time.Millisecond, time.Second, 10 * time.Second, time.Hour, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}
	if b := int(t.byte()); b < 2*len(edges) {
		return edges[b/2]
	}
	return time.Duration(t.int64())
}

func (t *tape) float() float64 {
	switch t.byte() % 4 {
	case 0:
		return 0
	case 1:
		return float64(t.byte()) / 100
	}
	return math.Float64frombits(uint64(t.int64()))
}

func (t *tape) config() Config {
	percent := func() int { return int(t.byte())%120 - 10 }
	return Config{
		Off: t.byte()%8 == 1, Choice: Choice(t.byte() % 5), Interval: t.duration(), Sweeps: t.int(), Consecutive: t.int(),
		ConsecutiveGateway: t.int(), ConsecutiveLocal: t.int(), Unconditional: t.byte()%2 == 1, Split: t.byte()%2 == 1,
		Statistic: Statistic(t.byte() % 4), Factor: t.float(), Floor: t.float(), MinHosts: t.int(), MinCalls: t.int(),
		FailurePercent: percent(), FailureMinHosts: t.int(), FailureMinCalls: t.int(),
		Enforce:      Enforce{percent(), percent(), percent(), percent(), percent(), percent(), percent()},
		BaseEjection: t.duration(), MaxEjection: t.duration(), Jitter: t.duration(), MaxEjected: percent(), Limit: Limit(t.byte() % 4), Panic: percent(),
	}
}

// FuzzNothingPanics makes calls under any configuration, valid or not, at any times.
func FuzzNothingPanics(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("some calls that fail, and then some that do not, at all kinds of times"))
	f.Add(make([]byte, 300))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := tape(data)
		c := in.config()
		s, err := New(c)
		if err != nil {
			// Whatever is wrong must not matter to the rest: carry on without.
			c = Config{Unconditional: in.byte()%2 == 0, MaxEjected: 100}
			if s, err = New(c, func(c Change) { _ = c.String() }); err != nil {
				t.Fatal(err)
			}
		}
		luck := func() uint64 { return uint64(in.int64()) }
		var tried Tried
		var air []Endpoint
		var names []string
		for n := 0; len(in) > 0 && n < 2000; n++ {
			now := in.duration()
			switch b := in.byte(); {
			case b < 16:
				names = nil
				for range in.byte() % 20 {
					names = append(names, string(rune('a'+in.byte()%24)))
				}
				s.Update(now, names)
			case b < 32:
				for _, st := range s.States(now) {
					if rate, _ := st.SuccessRate(); rate < 0 || rate > 1 || st.Load < 0 || st.Calls < 0 {
						t.Fatalf("%+v", st)
					}
				}
			case b < 40:
				tried = Tried{}
			case b < 140:
				e, ok := s.Pick(now, luck, []*Tried{nil, &tried}[b%2])
				if ok != (len(names) > 0) {
					t.Fatalf("of %q: %v", names, ok)
				}
				if ok {
					air = append(air, e)
				}
			default:
				if len(air) > 0 {
					i := int(in.byte()) % len(air)
					s.Done(now, air[i], Evidence(b%6), luck)
					air[i] = air[len(air)-1]
					air = air[:len(air)-1]
				}
			}
		}
		for _, e := range air {
			s.Done(in.duration(), e, FiveXX, nil)
		}
		for _, st := range s.States(0) {
			if st.Load != 0 {
				t.Fatalf("all calls have ended: %+v", st)
			}
		}
	})
}
