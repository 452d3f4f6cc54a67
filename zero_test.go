package lull_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// panicOf returns the value that f panics with, as text.
func panicOf(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

// A nil or zero Dependency or Registry is named by the panic.
func TestZeroValuesAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		ok := func(context.Context) (int, error) { return 1, nil }
		for name, d := range map[string]*lull.Dependency{"nil": nil, "zero": {}} {
			for what, use := range map[string]func(){
				"Do":       func() { lull.Do(ctx, d, ok) },
				"DoHedged": func() { lull.DoHedged(ctx, d, ok) },
				"Start":    func() { d.State().Start(0, engine.Spec{}) },
				"Name":     func() { d.Name() },
				"Now":      func() { d.Now() },
				"Update":   func() { d.Update(lull.Policy{}) },
				"Clone":    func() { d.Clone("x") },
				"Breaker":  func() { d.Breaker() },
				"Error":    func() { d.Error("", engine.Result{}, nil) },
			} {
				if text := panicOf(use); !strings.Contains(text, "lull.NewDependency") {
					t.Errorf("%s of a %s Dependency panics with %q", what, name, text)
				}
			}
		}
		for what, use := range map[string]func(r *lull.Registry){
			"Get":    func(r *lull.Registry) { r.Get("x") },
			"Len":    func(r *lull.Registry) { r.Len() },
			"All":    func(r *lull.Registry) { r.All(func(*lull.Dependency) bool { return true }) },
			"Update": func(r *lull.Registry) { r.Update(lull.Policy{}) },
		} {
			if text := panicOf(func() { use(new(lull.Registry)) }); !strings.Contains(text, "lull.NewRegistry") {
				t.Errorf("%s of a zero Registry panics with %q", what, text)
			}
		}
	})
}

// A nil *Error in a variable of type error is a failure, and its text names the mistake.
func TestANilErrorIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *lull.Error
		err := lull.Run(t.Context(), newDependency(t, lull.Policy{}), func(context.Context) error { return none })
		var e *lull.Error
		if !errors.As(err, &e) || e.Reason != engine.Permanent || e.Verdict.Kind != lull.KindUnclassified || !strings.Contains(err.Error(), "a nil *lull.Error") {
			t.Errorf("%v", err)
		}
		if errors.Is(none, context.Canceled) || none.Timeout() || errors.Unwrap(none) != nil {
			t.Error("a nil *Error means something")
		}
		if v := lull.Classify(lull.RetryAfter(none, time.Second)); v.Kind != lull.KindRateLimited {
			t.Errorf("marked: %+v", v)
		}
	})
}
