package hedge

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func TestOff(t *testing.T) {
	p := must.Have(Prepare(Config{Attempts: 1, Percentile: 0.9}))
	for name, h := range map[string]*Hedger{"nil": nil, "zero": new(Hedger), "one attempt": p.New(), "no plan": (*Plan)(nil).New()} {
		for now := time.Duration(0); now < time.Second; now += ms {
			f := h.Start(now)
			if f != (Flight{}) {
				t.Fatalf("%s: Start gives %+v", name, f)
			}
			if d, ok := f.Delay(); ok || d != 0 {
				t.Fatalf("%s: Delay %v, %v", name, d, ok)
			}
			if why := h.Fire(now, &f); why != Off || f.Reason() != Off {
				t.Fatalf("%s: Fire says %v", name, why)
			}
			h.Done(now, &f, true)
			h.Release()
		}
		if _, ok := h.Delay(0); ok || h.InFlight() != 0 {
			t.Errorf("%s: a delay, or %d in flight", name, h.InFlight())
		}
		if calls, late := h.Counts(0); calls != 0 || late != 0 {
			t.Errorf("%s: counts %d, %d", name, calls, late)
		}
	}
	// A Flight that one hedger made, and another is asked about.
	f := must.Have(New(Config{Attempts: 2, Delay: ms})).Start(0)
	check.Equal(t, new(Hedger).Fire(0, &f), Off, "a zero Hedger")
	f = must.Have(New(Config{Attempts: 2})).Start(0)
	new(Hedger).Done(0, &f, true)
	(*Hedger)(nil).Done(0, &f, true)
	var none Flight
	must.Have(New(Config{Attempts: 2})).Done(0, &none, true)
}

// gRFC A6: "hedgingDelay": "0.5s", "maxAttempts": 4 has attempts begin at 0, 0.5, 1
// and 1.5 s, and no more; a delay of zero has all begin at once.
func TestTimesOfGRPC(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		want  []time.Duration
	}{
		{500 * ms, []time.Duration{0, 500 * ms, 1000 * ms, 1500 * ms}},
		{AtOnce, []time.Duration{0, 0, 0, 0}},
	} {
		h := must.Have(New(Config{Attempts: 4, Delay: c.delay, Share: -1, InFlight: -1}))
		f := h.Start(0)
		now, began := time.Duration(0), []time.Duration{0}
		for range 10 {
			d, ok := f.Delay()
			if !ok {
				break
			}
			now += d
			if why := h.Fire(now, &f); why != Granted {
				t.Fatalf("Fire says %v", why)
			}
			began = append(began, now)
		}
		check.Slices(t, began, c.want, "delay %v: attempts begin at", c.delay)
		if why := h.Fire(now, &f); why != AttemptsInUse || f.Reason() != AttemptsInUse || h.InFlight() != 3 {
			t.Errorf("one more: %v, with %d in flight", why, h.InFlight())
		}
		if h.recent.Load() != nil || h.learned.Load() != nil {
			t.Error("counts and latencies are kept, and nobody needs them")
		}
		if d, ok := h.Delay(0); !ok || d != max(c.delay, 0) {
			t.Errorf("Delay %v, %v", d, ok)
		}
	}
}

func TestInFlight(t *testing.T) {
	h := must.Have(New(Config{Attempts: 2, Delay: ms, Share: -1, InFlight: 3}))
	var flights []Flight
	for range 5 {
		flights = append(flights, h.Start(0))
	}
	for i := range flights {
		want := Granted
		if i >= 3 {
			want = TooManyInFlight
		}
		if why := h.Fire(ms, &flights[i]); why != want {
			t.Errorf("hedge %d: %v, want %v", i+1, why, want)
		}
	}
	h.Release()
	check.Equal(t, h.Fire(2*ms, &flights[4]), TooManyInFlight, "asked again")
	f := h.Start(0)
	if why := h.Fire(ms, &f); why != Granted || h.InFlight() != 3 {
		t.Errorf("after one has ended: %v, %d in flight", why, h.InFlight())
	}
	for range 10 { // more than there are
		h.Release()
	}
	check.Equal(t, h.InFlight(), 0, "in flight after all have ended")
	f = h.Start(0)
	if why := h.Fire(ms, &f); why != Granted || h.InFlight() != 1 {
		t.Errorf("after too many have ended: %v, %d in flight", why, h.InFlight())
	}
}
