package every_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullgo/lull/integrations/every"
)

// A job that runs until it has nothing more to do.
func ExampleRun() {
	ctx, stop := context.WithCancelCause(context.Background())
	err := every.Run(ctx, "clean up on host-7", 10*time.Millisecond, func(context.Context) {
		stop(errors.New("nothing is left"))
	})
	fmt.Println(err)
	// Output: nothing is left
}

// Two machines of a fleet, and the same job.
func ExamplePhase() {
	a, b := every.Phase("report host-1", time.Hour), every.Phase("report host-2", time.Hour)
	fmt.Println(a != b, a == every.Phase("report host-1", time.Hour))
	// Output: true true
}

// The moment is the same on every machine, after every restart.
func ExampleNext() {
	at := time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
	next := every.Next(at, "report", time.Hour)
	fmt.Println(next.Sub(at) <= time.Hour, every.Next(next, "report", time.Hour).Sub(next))
	// Output: true 1h0m0s
}
