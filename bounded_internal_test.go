package lull

import (
	"context"
	"testing"
	"testing/synctest"
)

// A function that has run was not stopped.
func TestStoppingWhatHasRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := NewDependency("payments", Policy{})
		if err != nil {
			t.Fatal(err)
		}
		var early, late func() bool
		ran := make(chan struct{})
		err = Run(t.Context(), d, func(ctx context.Context) error {
			c := ctx.(interface {
				AfterFunc(func()) func() bool
			})
			early = c.AfterFunc(func() { t.Error("stopped, and ran") })
			late = c.AfterFunc(func() { close(ran) })
			if !early() || early() {
				t.Error("stop reports whether it has stopped the function, which it has once")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		<-ran
		if late() {
			t.Error("a function that has run was stopped")
		}
	})
}
