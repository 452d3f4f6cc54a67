package torture

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where timers are never late
		w := newWatch()
		defer w.close()
		began := time.Now()
		if got := w.late(began); got != 0 {
			t.Errorf("before the first tick it is %v", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := w.late(began); got != 0 || len(w.list) != 100 {
			t.Errorf("%d ticks, and timers are %v late", len(w.list), got)
		}
		w.mu.Lock()
		for i := range w.list {
			if i >= 50 {
				w.list[i].late = time.Duration(i) * ms
			}
		}
		w.mu.Unlock()
		for from, want := range map[time.Duration]time.Duration{0: 90 * ms, 500 * ms: 94 * ms, 2 * time.Second: 0} {
			if got := w.late(began.Add(from)); got != want {
				t.Errorf("from %v on it is %v, want %v", from, got, want)
			}
		}
	})
}
