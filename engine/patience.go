package engine

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// patience counts successes and timeouts of attempts that got less time than AttemptTimeout,
// since their call was near its deadline. Either their callers have shorter deadlines than a
// success usually takes, and the dependency is well; or it hangs. What happened before shows
// which: attempts with that much time usually succeeded, or they did not. So successes and
// timeouts are counted against each other, in classes by the time given. For a class without a
// count, the usual time of a success decides (type answered).
//
// A timeout is counted when an attempt of any class has succeeded after it, and one timeout at
// most for each success. So a hang changes nothing here, however long it is. If all callers have
// the same deadline, timeouts never outnumber successes, and each timeout is evidence against the
// dependency. It is made at the first timeout of such an attempt.
type patience struct {
	pending atomic.Uint64 // by class: an attempt timed out after the latest success
	sure    atomic.Uint64 // by class: score is at scoreTop, so a success changes nothing
	mu      sync.Mutex    // guards score
	score   [timeClasses]int8
}

const (
	timeClasses        = classMask + 1
	classesPerDoubling = 4  // classes for each doubling of the time
	shortestClass      = 18 // 2^18 ns, 262 µs, and less is the first class; 16 doublings above, the last
	// scoreTop is the largest difference between successes and timeouts of a class that is kept.
	scoreTop = 16
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

// succeeded counts a success of an attempt with so much time. patient: the attempt had all the
// time that the policy gives, or did not keep to its time, so this one does not count.
func (p *patience) succeeded(given time.Duration, patient bool) {
	own := uint64(0)
	if !patient {
		own = 1 << timeClass(given) &^ p.sure.Load()
	}
	if own == 0 && p.pending.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for classes := p.pending.Swap(0); classes != 0; classes &= classes - 1 {
		p.add(bits.TrailingZeros64(classes), -1)
	}
	if !patient {
		p.add(int(timeClass(given)), 1)
	}
}

// add is called with the lock held.
func (p *patience) add(class int, n int8) {
	s := min(max(p.score[class]+n, -scoreTop), scoreTop)
	p.score[class] = s
	if bit := uint64(1) << class; s == scoreTop {
		p.sure.Or(bit)
	} else {
		p.sure.And(^bit)
	}
}

// tooShort records a timeout of an attempt with so much time. It reports whether such attempts
// time out more often than they succeed. For a class without a count: whether successes usually
// take longer, else the next longer class with a count decides.
func (p *patience) tooShort(given time.Duration, usual uint) bool {
	class := timeClass(given)
	p.pending.Or(1 << class)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.score[class] == 0 && class < usual {
		return true
	}
	for _, s := range p.score[class:] {
		if s != 0 {
			return s < 0
		}
	}
	return false
}
