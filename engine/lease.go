package engine

import "time"

// A Lease is the hold of a consumer on a message that it handles: when to extend it, and
// when the work under it must end. It knows no time except how much of it is left. The
// zero Lease never lapses.
type Lease struct {
	Want   time.Duration // the length that each extension asks for
	Keep   time.Duration // what is kept of it to settle; zero: a tenth, at most 5 s
	First  time.Duration // its length at first
	Length time.Duration // its length when it was last extended
	Final  bool          // it cannot be extended any further
}

// NewLease returns a lease of which so much is left.
func NewLease(left, want, keep time.Duration, extends bool) Lease {
	left = max(left, 0)
	return Lease{Want: want, Keep: keep, First: left, Length: left, Final: !extends}
}

// Margin is how long before the end of the lease work under it ends.
func (l *Lease) Margin() time.Duration {
	if l.Keep > 0 {
		return min(l.Keep, l.Length/2)
	}
	return min(l.Length/10, 5*time.Second)
}

// Beat returns after how long to look at the lease, of which so much is left: every third
// of its length it is extended. Zero: it is to be extended now, by Want.
func (l *Lease) UntilExtension(left time.Duration) time.Duration {
	if more := left - l.Want; more > 0 { // the handler has extended it itself
		return more + l.Want/3
	}
	return 0
}

// Patience is how long to wait for the broker's answer to an extension.
func (l *Lease) AnswerTimeout() time.Duration { return max(l.Length/6, time.Millisecond) }

// Next returns when the next extension is due after one was tried, counted from its
// beginning: earlier if it failed.
func (l *Lease) AfterExtension(failed bool) time.Duration {
	if failed {
		return l.Length / 6
	}
	return l.Length / 3
}

// Extended notes an extension that asked for one length and got another. Less than was
// asked for, and than there was at first, is as far as it goes.
func (l *Lease) Extended(want, got time.Duration) {
	got = max(got, 0)
	l.Final = got < min(want, l.First)*9/10
	l.Length = got
}
