package event_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/event"
)

func ExampleNewLog() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Value.Kind() == slog.KindDuration && a.Key != "delay" {
			return slog.Attr{}
		}
		return a
	}}))
	d, _ := lull.NewDependency("users", lull.Policy{Attempts: 2, Budget: budget.Config{Stock: 5}, Backoff: backoff.Schedule{Kind: backoff.Constant, Base: time.Millisecond, Jitter: backoff.None}},
		lull.WithObserver(event.NewLog(log)))
	lull.Run(context.Background(), d, func(context.Context) error { return lull.Transient(errors.New("blip")) }, lull.Operation("get"))
	// Output:
	// level=WARN msg="call failed" dependency=users operation=get attempts=2 of=2 reason=attempts_exhausted class=transient code=transient error=blip attempt_1.class=transient attempt_1.code=transient attempt_1.error=blip attempt_1.delay=1ms
}
