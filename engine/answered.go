package engine

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// answered records the answers of a dependency in one word, since a simulated fleet has millions:
// when the most recently started attempt that was answered began, how long it took, and how long
// successes usually take.
//
// The upper bits are the start time in steps of startStep, plus one; zero: no attempt was
// answered. The next six bits are the timeClass of the latest answer; zero if that was no
// success. The last six are the timeClass of a usual success, at least 1; zero if none is known.
// It is a running median: a longer success moves it up by a class, a shorter one down.
type answered struct{ word atomic.Int64 }

const (
	startStep  = 1 << 12 // 4 us
	classBits  = 6       // for timeClasses
	classMask  = 1<<classBits - 1
	recordStep = time.Millisecond // of attempts that started closer together, one is recorded
)

// sinceLatest returns how much later than the recorded attempt another one began that was
// answered now, and whether to record that.
func (a *answered) sinceLatest(began time.Duration) (since time.Duration, due bool) {
	last := a.word.Load()
	since = began + startStep - time.Duration(last&^(startStep-1))
	return since, last == 0 || since >= recordStep
}

// record records the start time of an attempt that was answered. took is how long it took if it
// succeeded, else unknownTime.
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

// latestStart returns the recorded start time; negative if there is none.
func (a *answered) latestStart() time.Duration {
	return time.Duration(a.word.Load()&^(startStep-1)) - startStep
}

// usualTime returns how long a success usually takes, rounded up to its class; zero if not known.
func (a *answered) usualTime() time.Duration { return classTop(a.usualClass()) }

func (a *answered) usualClass() uint { return uint(a.word.Load()) & classMask }

// answersQuickly reports whether there is no queue, as quickParts has it, where attempts may take
// given.
func (a *answered) answersQuickly(given time.Duration) bool {
	usual, last := a.usualTime(), classTop(uint(a.word.Load())>>classBits&classMask) // zero if the latest answer was no success
	return usual > 0 && last > 0 && usual < given/quickParts && last < given/2
}

const (
	timeClasses        = classMask + 1
	classesPerDoubling = 4  // classes for each doubling of the time
	shortestClass      = 18 // 2^18 ns, 262 µs, and less is the first class; 16 doublings above, the last
)

func timeClass(given time.Duration) uint {
	v := uint64(max(given, 0))
	n := bits.Len64(v)
	if n <= shortestClass {
		return 0
	}
	part := v >> (n - 3) & (classesPerDoubling - 1) // the two bits below the highest
	return min(uint(n-shortestClass-1)*classesPerDoubling+uint(part), timeClasses-1)
}

// classTop returns about the longest time of a class; zero for the first.
func classTop(class uint) time.Duration {
	if class == 0 {
		return 0
	}
	return time.Duration(classesPerDoubling+1+class%classesPerDoubling) << (shortestClass - 2 + class/classesPerDoubling)
}
