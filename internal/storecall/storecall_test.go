package storecall

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
)

// The deadline that a server gets is never later than the caller's own, whatever part of the round
// trip came after the reading, and earlier by no more than the whole of it.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := func() int64 { return time.Now().Add(-time.Hour).UnixMicro() } // its clock is wrong
		var c Clock
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if at, ok := c.Deadline(ctx); at != 0 || !ok {
			t.Errorf("without a reading: %d, %v; want one that has passed", at, ok)
		}
		if _, ok := c.Deadline(t.Context()); ok {
			t.Error("a context without a deadline has one")
		}
		for _, back := range []time.Duration{0, 3 * time.Millisecond, time.Second} {
			reading := server()
			time.Sleep(back)
			c.Read(reading)
			for _, later := range []time.Duration{0, time.Hour} {
				time.Sleep(later)
				ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
				at, ok := c.Deadline(ctx)
				cancel()
				if early := server() + 700_000 - at; !ok || early != back.Microseconds() {
					t.Errorf("an answer that took %v back, %v later: early by %d µs", back, later, early)
				}
			}
		}
	})
}

// A call ends with its context, and with its own result if that comes first.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		want := errors.New("its own")
		check.Equal(t, Wait(ctx, func() error { return want }), want, "its own error")
		begun := time.Now()
		if err := Wait(ctx, func() error { time.Sleep(time.Hour); return want }); err != context.DeadlineExceeded || time.Since(begun) != time.Second {
			t.Errorf("%v after %v, want the context's error at its end", err, time.Since(begun))
		}
		check.Equal(t, Wait(t.Context(), func() error { time.Sleep(time.Hour); return want }), want, "its own error, late")
	})
}
