//go:build !race

// The race detector does its own atomics, and dies of a fault in them.

package budget

import (
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// Cores share a cache line for reading, and fight over it for writing. So while
// nothing fails nothing is written, and neither is it when a refusal repeats
// another: here the bucket lies in memory that faults at a write.
func TestHealthAndRepeatedRefusalsWriteNothing(t *testing.T) {
	page := must.Have(syscall.Mmap(-1, 0, syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE))
	defer syscall.Munmap(page)
	b := (*Bucket)(unsafe.Pointer(&page[0]))
	a := (*Account)(unsafe.Pointer(&page[512]))
	protect := func(how int) {
		t.Helper()
		must.Succeed(syscall.Mprotect(page, how))
	}
	readOnly := func(what string, f func()) {
		t.Helper()
		protect(syscall.PROT_READ)
		defer protect(syscall.PROT_READ | syscall.PROT_WRITE)
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%s: %v", what, r)
			}
		}()
		f()
	}
	// Once there is a window, all that is written is in it.
	flowing := withFlow(t, Config{})
	a.stock.fill(flowing.stock.terms)
	a.window.Store(flowing.window.Load())
	readOnly("calls on a full account with a window", func() { earnMany(a, 0, 10) })
	check.Equal(t, flowing.Balance(0), DefaultStock+1, "the balance")
	a.window.Store(nil)
	wrote := false
	defer func() {
		if !wrote {
			t.Error("a withdrawal wrote nothing, so this test shows nothing")
		}
	}()
	for _, c := range []Config{{}, {Earn: Arrivals}} {
		b.fill(newTerms(c))
		readOnly("calls on a full bucket", func() { earnMany(b, 0, 3) })
		func() {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() { wrote = recover() != nil }()
			protect(syscall.PROT_READ)
			b.Withdraw(0, Transient, never)
		}()
		protect(syscall.PROT_READ | syscall.PROT_WRITE)
		for b.Withdraw(0, Transient, never).OK {
		}
		readOnly("failing calls on an empty bucket", func() {
			for range 3 {
				b.Failed(0)
				b.Withdraw(0, Transient, never)
				b.Done(0, false, 0, 0)
				b.Balance(0)
			}
		})
	}
}
