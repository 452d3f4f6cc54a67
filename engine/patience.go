package engine

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// patience counts what became of attempts that were given less time than the policy's
// AttemptTimeout, because their call was near its deadline. Two things look the same, one
// call at a time:
//
//   - The caller chose a deadline that is shorter than successes usually take. The
//     dependency is well, and answers those who wait.
//   - The dependency hangs, and all its callers have deadlines.
//
// They differ in what came before: attempts with so much time usually succeeded, or they
// did not. So successes and timeouts are counted against each other, in classes by the time
// that the attempt was given. Of a class that nothing is known of, how long successes usually
// take decides (answered): callers that give less are the cause of their timeouts.
//
// A timeout is counted when some attempt of any class has succeeded after it, and at most
// one for each success: while nobody is answered, nothing is known about deadlines. So a
// hang changes nothing here, however long it lasts. Where all callers have the same
// deadline successes are never outnumbered, and every timeout is evidence.
//
// It is made when an attempt of this kind first times out. Until something has succeeded, a
// timeout is evidence against the dependency.
type patience struct {
	pending atomic.Uint64 // by class: an attempt timed out after the latest success
	sure    atomic.Uint64 // by class: score is at its top, and a success changes nothing
	mu      sync.Mutex    // guards score
	score   [timeClasses]int8
}

const (
	timeClasses        = classMask + 1
	classesPerDoubling = 4  // classes for each doubling of the time
	shortestClass      = 18 // 2^18 ns, 262 µs, and less is the first class; 16 doublings above, the last
	// scoreTop is how many more timeouts than successes change what is thought of a class.
	scoreTop = 16
)

// timeClass is the class of attempts that were given so much time.
func timeClass(given time.Duration) uint {
	v := uint64(max(given, 0))
	n := bits.Len64(v)
	if n <= shortestClass {
		return 0
	}
	part := v >> (n - 3) & (classesPerDoubling - 1) // the two bits below the highest
	return min(uint(n-shortestClass-1)*classesPerDoubling+uint(part), timeClasses-1)
}

// classTop is the longest time of a class, about; 0 for the first.
func classTop(class uint) time.Duration {
	if class == 0 {
		return 0
	}
	return time.Duration(classesPerDoubling+1+class%classesPerDoubling) << (shortestClass - 2 + class/classesPerDoubling)
}

// succeeded notes a success of an attempt that was given so much time. Patient: this does not
// count, because it was all that the policy gives, or was not kept to.
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

// tooShort notes a timeout of an attempt that was given so much time, and reports whether
// such attempts time out more often than they succeed. If nothing is known of their class,
// they were given too little if successes usually take longer; else it goes by the next
// longer class of which something is known.
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
