package hedge

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// tape is where a fuzzed history comes from.
type tape []byte

func (t *tape) byte() (b byte) {
	if len(*t) > 0 {
		b, *t = (*t)[0], (*t)[1:]
	}
	return b
}

func (t *tape) int64() int64 {
	var word [8]byte
	n := copy(word[:], *t)
	*t = (*t)[n:]
	return int64(binary.LittleEndian.Uint64(word[:]))
}

func (t *tape) duration() time.Duration {
	switch b := t.byte(); b % 8 {
	case 0:
		return 0
	case 1:
		return time.Duration(t.int64())
	case 2:
		return -time.Duration(t.byte())
	default:
		return time.Duration(t.byte()) * []time.Duration{1, time.Microsecond, time.Millisecond, 100 * time.Millisecond, time.Second}[b%5]
	}
}

func (t *tape) float() float64 {
	if b := t.byte(); b < 250 {
		return float64(b) / 100
	}
	return math.Float64frombits(uint64(t.int64()))
}

func (t *tape) number() int { return int(int8(t.byte())) }

// FuzzHedger makes calls under any configuration, valid or not, at any times, in any
// order of the methods. Nothing may panic, and what an answer promises must hold.
func FuzzHedger(f *testing.F) {
	f.Add([]byte{})
	r := rand.New(rand.NewPCG(1, 9))
	for range 20 {
		data := make([]byte, 1000)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := tape(data)
		c := Config{Attempts: in.number(), Delay: in.duration(), Percentile: in.float(), Window: in.duration(), MinSamples: in.number(),
			MinDelay: in.duration(), MaxDelay: in.duration(), Share: in.float(), InFlight: in.number()}
		h, err := New(c)
		if err != nil {
			if h != nil || err.Error() == "" {
				t.Fatalf("New returns %v, %v", h, err)
			}
			if h, err = New(Config{Attempts: 3, MinSamples: 1, Share: 0.5}); err != nil {
				t.Fatal(err)
			}
		}
		granted := 0
		for len(in) > 0 {
			f := h.Start(in.duration())
			hedges := 0
			for range in.byte() % 16 {
				switch in.byte() % 4 {
				case 0:
					h.Done(in.duration(), &f, in.byte()%2 == 0)
				case 1:
					h.Release()
					granted = max(0, granted-1)
				default:
					d, ok := f.Delay()
					why := h.Fire(in.duration(), &f)
					if d < 0 || why.String() == "" || why == Granted && !ok {
						t.Fatalf("after %v, %v: Fire says %v", d, ok, why)
					}
					if why == Granted {
						hedges++
						granted++
					}
				}
			}
			if hedges >= MaxAttempts || h.InFlight() != granted {
				t.Fatalf("%d hedges of one call; %d in flight, want %d", hedges, h.InFlight(), granted)
			}
			h.Delay(in.duration())
			h.Counts(in.duration())
		}
	})
}
