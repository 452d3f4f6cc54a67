package torture

import (
	"slices"
	"sync"
	"time"
)

// usualLateness is how late a timer may be on an idle machine.
const usualLateness = 5 * time.Millisecond

type timerWatch struct {
	began time.Time
	stop  chan struct{}
	over  sync.WaitGroup

	mu   sync.Mutex
	list []tick
}

type tick struct{ at, late time.Duration }

func newWatch() *timerWatch {
	const every = 10 * time.Millisecond
	w := &timerWatch{began: time.Now(), stop: make(chan struct{})}
	w.over.Go(func() {
		timer := time.NewTimer(every)
		defer timer.Stop()
		for {
			set := time.Since(w.began)
			select {
			case <-timer.C:
			case <-w.stop:
				return
			}
			at := time.Since(w.began)
			w.mu.Lock()
			w.list = append(w.list, tick{at, at - set - every})
			w.mu.Unlock()
			timer.Reset(every)
		}
	})
	return w
}

func (w *timerWatch) close() {
	close(w.stop)
	w.over.Wait()
}

// late returns what nine of ten timers were less late than since a time.
func (w *timerWatch) late(since time.Time) time.Duration {
	from := since.Sub(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	i, _ := slices.BinarySearchFunc(w.list, from, func(t tick, from time.Duration) int { return int(t.at - from) })
	var list []time.Duration
	for _, t := range w.list[i:] {
		list = append(list, t.late)
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)*9/10]
}
