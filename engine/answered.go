package engine

import (
	"sync/atomic"
	"time"
)

// answered is the memory of the attempts that a dependency has answered: the start
// time of the most recently started one, and how long successes usually take. It is one
// word, since a simulated fleet has millions.
//
// The start time comes first: in steps of startStep, plus one, so that the zero value is that
// no attempt was answered. The last six bits are the usual time of a success, by timeClass;
// 0 if none is known. (What is shorter than the second class counts as that.) The usual
// time is a running median: a success that took longer moves
// it up by a class, one that took less moves it down.
type answered struct{ word atomic.Int64 }

const (
	startStep = 1 << 6           // 64 ns
	usualBits = startStep - 1    // as many as timeClasses
	noteStep  = time.Millisecond // attempts that started so close together are not both noted
)

// since is how much later than the attempt that was noted last another one began that
// was answered now, and whether that is to be noted.
func (a *answered) since(began time.Duration) (since time.Duration, due bool) {
	last := a.word.Load()
	since = began + startStep - time.Duration(last&^usualBits)
	return since, last == 0 || since >= noteStep
}

// note keeps the start time of an attempt that was answered. If it succeeded, took is how long
// that took; else noTime.
func (a *answered) note(began, took time.Duration) {
	usual := a.usualClass()
	if took != noTime {
		switch class := max(timeClass(took), 1); {
		case usual == 0:
			usual = class
		case class > usual:
			usual++
		case class < usual:
			usual--
		}
	}
	a.word.Store(int64(began)&^usualBits + startStep | int64(usual))
}

const noTime time.Duration = -1

// latest is the start time that was noted last; negative if there is none.
func (a *answered) latest() time.Duration {
	return time.Duration(a.word.Load()&^usualBits) - startStep
}

// usual is the time that a success usually takes, rounded up to its class. 0: not known.
func (a *answered) usual() time.Duration { return classTop(a.usualClass()) }

// usualClass is the class of the time that a success usually takes. 0: not known.
func (a *answered) usualClass() uint { return uint(a.word.Load() & usualBits) }
