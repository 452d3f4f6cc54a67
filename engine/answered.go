package engine

import (
	"sync/atomic"
	"time"
)

// answered is the memory of the attempts that a dependency has answered: the start
// time of the most recently started one, how long that took, and how long successes usually
// take. It is one word, since a simulated fleet has millions.
//
// The start time comes first: in steps of startStep, plus one, so that the zero value is that
// no attempt was answered. The last six bits are the usual time of a success, by timeClass;
// 0 if none is known. (What is shorter than the second class counts as that.) The usual
// time is a running median: a success that took longer moves
// it up by a class, one that took less moves it down. The six bits before are the class of
// the latest answer; 0 if that was no success.
type answered struct{ word atomic.Int64 }

const (
	startStep  = 1 << 12 // 4 us
	classBits  = 6       // as many as timeClasses
	classMask  = 1<<classBits - 1
	recordStep = time.Millisecond // attempts that started so close together are not both noted
)

// since is how much later than the attempt that was noted last another one began that
// was answered now, and whether that is to be noted.
func (a *answered) sinceLatest(began time.Duration) (since time.Duration, due bool) {
	last := a.word.Load()
	since = began + startStep - time.Duration(last&^(startStep-1))
	return since, last == 0 || since >= recordStep
}

// note keeps the start time of an attempt that was answered. If it succeeded, took is how long
// that took; else unknownTime.
func (a *answered) record(began, took time.Duration) {
	usual, class := a.usualClass(), uint(0)
	if took != unknownTime {
		switch class = max(timeClass(took), 1); {
		case usual == 0:
			usual = class
		case class > usual:
			usual++
		case class < usual:
			usual--
		}
	}
	a.word.Store(int64(began)&^(startStep-1) + startStep | int64(class<<classBits|usual))
}

const unknownTime time.Duration = -1

// latest is the start time that was noted last; negative if there is none.
func (a *answered) latestStart() time.Duration {
	return time.Duration(a.word.Load()&^(startStep-1)) - startStep
}

// usual is the time that a success usually takes, rounded up to its class. 0: not known.
func (a *answered) usualTime() time.Duration { return classTop(a.usualClass()) }

// usualClass is the class of the time that a success usually takes. 0: not known.
func (a *answered) usualClass() uint { return uint(a.word.Load()) & classMask }

// quick reports whether there is no line, given how long attempts may take: successes usually take
// a small part of that, and the latest answer did not take most of it.
func (a *answered) answersQuickly(given time.Duration) bool {
	usual, last := a.usualTime(), a.latestTook()
	return usual > 0 && last > 0 && usual < given/quickParts && last < given/2
}

// last is the time that the latest answer took, rounded up to its class. 0: it was no success.
func (a *answered) latestTook() time.Duration {
	return classTop(uint(a.word.Load()) >> classBits & classMask)
}

// oneByOne reports whether a process makes one call after the other, of which one began now and the one
// before was quick, given how long they may take: it was idle meanwhile for less time than that one
// took. (Classes round up, by a fifth at most.)
func (a *answered) oneCallAfterTheOther(now, given time.Duration) bool {
	took := a.latestTook()
	idle := now - a.latestStart() - took
	return 0 < took && took < given/quickParts && -took/4 <= idle && idle < max(took, 2*recordStep)
}
