package hedge

import "time"

// A Flight is one call, from the start of its first attempt to the end of that
// attempt. Start makes it. It is used by one goroutine at a time; the zero Flight
// is that of a call that is not hedged and teaches nothing.
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

// Delay is how long after the start of the latest attempt Fire may be asked for
// another one beside it: zero means at once. False: it need not be asked. Set a
// timer only if it is true; it is the same after each Fire.
func (f *Flight) Delay() (time.Duration, bool) { return f.delay, f.allowed.why == Granted }

// Reason is why the call may have no further hedge, and Granted while it may.
func (f *Flight) Reason() FireResult { return f.allowed.why }
