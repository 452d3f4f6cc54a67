package queuetest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A recorder is a testing.TB that keeps what a test reports, so that the caller may discard it.
type recorder struct {
	testing.TB // may be nil, if only methods in this file are called

	failed, skipped atomic.Bool

	mu       sync.Mutex
	said     []string
	cleanups []func()
}

// run runs f as a test, and then its cleanups.
func (r *recorder) run(f func(t testing.TB)) {
	within := func(f func()) { // a goroutine that FailNow may end
		var g sync.WaitGroup
		g.Go(f)
		g.Wait()
	}
	within(func() { f(r) })
	for _, f := range slices.Backward(r.cleanups) {
		within(f)
	}
}

// reportTo has t report what was kept, and end as the test did.
func (r *recorder) reportTo(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.said) > 0 {
		t.Log(r.text())
	}
	switch {
	case r.Failed():
		t.FailNow()
	case r.Skipped():
		t.SkipNow()
	}
}

func (r *recorder) text() string { return strings.Join(r.said, "\n") }

// note keeps text, and the line of the check that reports it: checks are functions, and methods help them.
func (r *recorder) note(failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed.Store(failed || r.Failed())
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if !more || !strings.Contains(frame.Function, "queuetest.(*") {
			r.said = append(r.said, fmt.Sprintf("%s:%d: %s", filepath.Base(frame.File), frame.Line, strings.TrimSpace(text)))
			return
		}
	}
}

func (r *recorder) Log(a ...any)              { r.note(false, fmt.Sprintln(a...)) }
func (r *recorder) Logf(f string, a ...any)   { r.note(false, fmt.Sprintf(f, a...)) }
func (r *recorder) Error(a ...any)            { r.note(true, fmt.Sprintln(a...)) }
func (r *recorder) Errorf(f string, a ...any) { r.note(true, fmt.Sprintf(f, a...)) }
func (r *recorder) Fail()                     { r.note(true, "Fail") }
func (r *recorder) FailNow()                  { r.note(true, "FailNow"); runtime.Goexit() }
func (r *recorder) Fatal(a ...any)            { r.note(true, fmt.Sprintln(a...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, a ...any) { r.note(true, fmt.Sprintf(f, a...)); runtime.Goexit() }
func (r *recorder) Skip(a ...any)             { r.note(false, fmt.Sprintln(a...)); r.SkipNow() }
func (r *recorder) Skipf(f string, a ...any)  { r.note(false, fmt.Sprintf(f, a...)); r.SkipNow() }

func (r *recorder) SkipNow()      { r.skipped.Store(true); runtime.Goexit() }
func (r *recorder) Skipped() bool { return r.skipped.Load() }
func (r *recorder) Failed() bool  { return r.failed.Load() }

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}
