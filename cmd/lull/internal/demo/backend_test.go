package demo

import (
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// serveVirtually hands n requests to a backend at once, in virtual time, and
// returns when each was answered.
func serveVirtually(t *testing.T, s setting, n int, aside func(*backend)) []time.Duration {
	var mu sync.Mutex
	var answered []time.Duration
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	b := newBackend(s, clock)
	if aside != nil {
		go aside(b)
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			w := httptest.NewRecorder()
			b.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			if w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
			mu.Lock()
			defer mu.Unlock()
			answered = append(answered, clock())
		})
	}
	wg.Wait()
	b.close()
	return answered
}

func TestBackendHasItsCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tenSeconds()
		s.Capacity, s.Queue = 100, 4000
		answered := serveVirtually(t, s, 4000, nil)
		// 4000 random service times: their mean is within 1.6 % two times in three.
		if took := answered[len(answered)-1].Seconds(); math.Abs(took-40) > 4 {
			t.Errorf("4000 requests took %.1f s at 100 a second", took)
		}
	})
}

func TestNothingLeavesAFrozenBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tenSeconds()
		s.Capacity, s.Queue = 100, 400
		answered := serveVirtually(t, s, 400, func(b *backend) {
			time.Sleep(time.Second)
			b.gate.close()
			time.Sleep(2 * time.Second)
			b.gate.open()
		})
		sooner := 0
		for _, at := range answered {
			switch {
			case at < time.Second:
				sooner++
			case at > time.Second && at < 3*time.Second:
				t.Errorf("an answer at %v", at)
			}
		}
		if sooner == 0 || sooner == len(answered) {
			t.Errorf("%d of %d were answered before it froze", sooner, len(answered))
		}
		if last := answered[len(answered)-1]; last < 5*time.Second || last > 7*time.Second {
			t.Errorf("the last answer came at %v; 4 s of work with a pause of 2 s end at about 6 s", last)
		}
	})
}
