package throttle

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// Whatever the configuration, the times and their order: nothing panics, waits are
// not negative and within MaxWait, shares are shares, and rates are numbers.
func FuzzNothingPanics(f *testing.F) {
	f.Add(uint8(1), int64(0), 0.0, 0, int64(0), int64(0), 0.0, int64(0), int64(0), []byte("\x00\x00\x00\x00\x00\x00\x00\x01\x00"))
	f.Add(uint8(2), int64(math.MaxInt64), 1.05, 1, int64(1), int64(math.MaxInt64), 0.001, int64(math.MaxInt64), int64(math.MinInt64),
		[]byte("\x7f\xff\xff\xff\xff\xff\xff\xff\x09\x80\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x00\x09"))
	f.Add(uint8(1), int64(sec), 1000.0, math.MaxInt, int64(sec), int64(-1), 1e6, int64(-1), int64(1),
		[]byte("\x80\x00\x00\x00\x00\x00\x00\x00\x09\x7f\xff\xff\xff\xff\xff\xff\xff\x01\x80\x00\x00\x00\x00\x00\x00\x01\x10"))
	f.Fuzz(func(t *testing.T, mode uint8, window int64, k float64, minRequests int, recent, probe int64, minRate float64, maxWait, every int64, calls []byte) {
		c := Config{Mode(mode), time.Duration(window), k, minRequests, time.Duration(recent), time.Duration(probe), minRate, time.Duration(every), time.Duration(maxWait)}
		th, err := New(c)
		if err != nil {
			if th != nil || c.Validate() == nil {
				t.Fatalf("%+v, %v", th, err)
			}
			return
		}
		var luck uint64
		for ; len(calls) >= 9; calls = calls[9:] {
			now := time.Duration(binary.BigEndian.Uint64(calls))
			luck = luck*6364136223846793005 + 1442695040888963407
			for range 1 + calls[8]>>4 {
				wait, ok := th.Start(now, func() uint64 { return luck })
				switch {
				case wait < 0, c.Mode != Cubic && wait != 0:
					t.Fatalf("at %v: wait %v", now, wait)
				case ok && wait > c.rules().maxWait:
					t.Fatalf("at %v: wait %v, longer than allowed", now, wait)
				}
				if ok {
					th.Done(now, Evidence(calls[8]&7))
				}
			}
			s := th.State(now)
			for _, x := range []float64{s.Rate, s.Sent, s.Refusal} {
				if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
					t.Fatalf("at %v: %+v", now, s)
				}
			}
			if s.Refusal >= 1 || s.Accepts > s.Requests || s.Limiting && s.Rate < th.rules.minRate {
				t.Fatalf("at %v: %+v", now, s)
			}
		}
	})
}

func TestTheEndsOfTime(t *testing.T) {
	times := []time.Duration{math.MinInt64, math.MinInt64 + 1, -sec, -1, 0, 1, sec, math.MaxInt64 - 1, math.MaxInt64}
	for _, mode := range []Mode{Adaptive, Cubic} {
		for _, from := range times {
			for _, to := range times {
				th := must.Have(New(Config{Mode: mode}))
				learns(th, from, RateLimited, 100)
				th.Start(from, unlucky)
				learns(th, to, RateLimited, 100)
				wait, ok := th.Start(to, unlucky)
				s := th.State(to)
				if wait < 0 || ok && wait > 2*sec || !(s.Refusal >= 0 && s.Refusal < 1) || math.IsNaN(s.Rate+s.Sent) {
					t.Errorf("%v, from %d to %d: wait %v, %t, %+v", mode, from, to, wait, ok, s)
				}
			}
		}
	}
}
