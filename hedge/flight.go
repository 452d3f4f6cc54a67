package hedge

import "time"

// A Flight is one call, from the start to the end of its first attempt. Start makes it. One
// goroutine may use it at a time. The zero Flight is not hedged, and nothing is learned
// from it.
type Flight struct {
	start   time.Duration
	delay   time.Duration
	allowed allowance // apart, since a struct of five fields is not kept in registers
}

type allowance struct {
	left  uint8      // hedges that it may still have
	why   FireResult // Granted, or why it may have none
	learn bool       // Done has something to learn from it
}

// Delay returns how long after the start of the latest attempt Fire may be called; zero: at
// once. Set a timer only if ok is true. The delay is the same after each Fire.
func (f *Flight) Delay() (time.Duration, bool) { return f.delay, f.allowed.why == Granted }

// Reason returns why the call may have no further hedge, or Granted if it may.
func (f *Flight) Reason() FireResult { return f.allowed.why }
