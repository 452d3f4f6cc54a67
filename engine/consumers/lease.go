package consumers

import "time"

// A Lease is a consumer's hold on a message: when to extend it, and when the work under it must
// end. The zero Lease never lapses.
type Lease struct {
	Want   time.Duration // the length that each extension asks for
	Keep   time.Duration // the time that is kept to settle; zero: a tenth of the lease, at most 5 s
	First  time.Duration // its length at first
	Length time.Duration // its length when it was last extended
	Final  bool          // it cannot be extended any further
}

// NewLease returns a lease that ends after left.
func NewLease(left, want, keep time.Duration, extends bool) Lease {
	left = max(left, 0)
	return Lease{Want: want, Keep: keep, First: left, Length: left, Final: !extends}
}

// Margin returns how long before the end of the lease the work under it ends.
func (l *Lease) Margin() time.Duration {
	if l.Keep > 0 {
		return min(l.Keep, l.Length/2)
	}
	return min(l.Length/10, 5*time.Second)
}

// UntilExtension returns how long to wait before an extension by Want, if the lease ends after
// left; zero: extend now.
func (l *Lease) UntilExtension(left time.Duration) time.Duration {
	if more := left - l.Want; more > 0 { // the handler has extended it itself
		return more + l.Want/3
	}
	return 0
}

// AnswerTimeout returns how long to wait for the broker's answer to an extension.
func (l *Lease) AnswerTimeout() time.Duration { return max(l.Length/6, time.Millisecond) }

// AfterExtension returns the time from the beginning of one extension to the next: a third of the
// lease, or half of that if it failed.
func (l *Lease) AfterExtension(failed bool) time.Duration {
	if failed {
		return l.Length / 6
	}
	return l.Length / 3
}

// Extended records an extension that asked for want and got got. If that is less than was asked
// for, and than there was at first, the lease cannot be extended further.
func (l *Lease) Extended(want, got time.Duration) {
	got = max(got, 0)
	l.Final = got < min(want, l.First)*9/10
	l.Length = got
}
