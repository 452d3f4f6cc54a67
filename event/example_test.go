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
		if a.Key == slog.TimeKey || a.Key == "elapsed" || a.Key == "slept" {
			return slog.Attr{}
		}
		return a
	}}))
	d, _ := lull.NewDependency("users", lull.Policy{Attempts: 2, Budget: budget.Config{Stock: 5}, Backoff: backoff.Schedule{Kind: backoff.Constant, Base: time.Millisecond, Jitter: backoff.None}},
		lull.WithObserver(event.NewLog(log)))
	lull.Run(context.Background(), d, func(context.Context) error { return lull.Transient(errors.New("blip")) }, lull.Operation("get"))
	// Output:
	// level=INFO msg=retrying dependency=users operation=get attempt=2 of=2 delay_before_jitter=1ms delay=1ms class=transient code=transient error=blip
	// level=WARN msg="call failed" dependency=users operation=get attempt=2 of=2 reason=attempts_exhausted class=transient code=transient error=blip
}
