package bulkhead

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAcquireWaitsAtMostMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Config{InFlight: 1, MaxWait: 3 * time.Second})
		l.TryAcquire()
		start := time.Now()
		if err := l.Acquire(t.Context()); err != ErrFull {
			t.Errorf("Acquire: %v, want ErrFull", err)
		}
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("waited %v, want 3s", got)
		}
		if l.InFlight() != 1 || l.Waiting() != 0 {
			t.Errorf("%d in flight, %d waiting", l.InFlight(), l.Waiting())
		}
	})
}

func TestAcquireRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l := mustNew(t, Config{InFlight: 1})
		l.TryAcquire()
		if err := l.Acquire(t.Context()); err != ErrFull {
			t.Errorf("without MaxWait: %v, want ErrFull", err)
		}
		l = mustNew(t, Config{InFlight: 1, MaxWait: time.Second, MaxQueue: 1})
		l.TryAcquire()
		l.Join(0, new(Waiter))
		if err := l.Acquire(t.Context()); err != ErrFull {
			t.Errorf("queue full: %v, want ErrFull", err)
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("it took %v", got)
		}
	})
}

func TestAcquireGetsThePermitThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Config{InFlight: 1, MaxWait: 10 * time.Second, MaxQueue: 5})
		l.TryAcquire()
		start := time.Now()
		type event struct {
			caller int
			at     time.Duration
		}
		served := make(chan event, 5)
		for i := range 5 {
			go func() {
				if err := l.Acquire(t.Context()); err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
				served <- event{i, time.Since(start)}
				time.Sleep(time.Second)
				l.Release()
			}()
			synctest.Wait() // so that they stand in this order
		}
		time.Sleep(2 * time.Second)
		l.Release()
		for i := range 5 {
			want := event{i, time.Duration(2+i) * time.Second}
			if got := <-served; got != want {
				t.Errorf("served %+v, want %+v", got, want)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if l.InFlight() != 0 || l.Waiting() != 0 {
			t.Errorf("%d in flight, %d waiting", l.InFlight(), l.Waiting())
		}
	})
}

func TestAcquireAndItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Config{InFlight: 1, MaxWait: 10 * time.Second})
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Acquire(over); err != context.Canceled || l.InFlight() != 0 {
			t.Errorf("context over before: %v, %d in flight", err, l.InFlight())
		}
		//lint:ignore SA1012 it must not panic
		if err := l.Acquire(nil); err != nil {
			t.Errorf("no context: %v", err)
		}
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Acquire(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("context over while waiting: %v", err)
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("waited %v, want 1s", got)
		}
		if l.InFlight() != 1 || l.Waiting() != 0 {
			t.Errorf("%d in flight, %d waiting", l.InFlight(), l.Waiting())
		}
	})
}

// The permit arrives, the context ends and the wait runs out in one instant, in
// any order. Whatever Acquire returns, the permit is accounted for.
func TestAcquireLeaksNoPermitWhenAllHappensAtOnce(t *testing.T) {
	outcomes := map[error]int{}
	for i := range 500 {
		synctest.Test(t, func(t *testing.T) {
			maxWait, timeout := time.Second, time.Second
			switch i % 3 {
			case 0:
				maxWait = time.Minute
			case 1:
				timeout = time.Minute
			}
			l := mustNew(t, Config{InFlight: 1, MaxWait: maxWait})
			l.TryAcquire()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			go func() {
				time.Sleep(time.Second)
				l.Release()
			}()
			err := l.Acquire(ctx)
			outcomes[err]++
			if err == nil && ctx.Err() != nil && timeout == time.Minute {
				t.Errorf("context ended early: %v", ctx.Err())
			}
			synctest.Wait()
			want := 0
			if err == nil {
				want = 1
			}
			if l.InFlight() != want || l.Waiting() != 0 {
				t.Fatalf("Acquire said %v: %d in flight, %d waiting", err, l.InFlight(), l.Waiting())
			}
		})
	}
	t.Logf("%d got it, %d full, %d ended", outcomes[nil], outcomes[ErrFull], outcomes[context.DeadlineExceeded])
}

// The same with a successor behind: the permit that is turned down goes on to it.
func TestAcquirePassesOnAPermitItCannotUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Config{InFlight: 1, MaxWait: time.Minute, MaxQueue: 2})
		l.TryAcquire()
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- l.Acquire(ctx) }()
		synctest.Wait()
		admitted := false
		l.Join(0, &Waiter{Admit: func() { admitted = true }})
		cancel()
		l.Release()
		if err := <-result; err != context.Canceled {
			t.Errorf("Acquire: %v, want context.Canceled", err)
		}
		synctest.Wait()
		if !admitted || l.InFlight() != 1 || l.Waiting() != 0 {
			t.Errorf("the next was admitted: %v; %d in flight, %d waiting", admitted, l.InFlight(), l.Waiting())
		}
	})
}
