package backoff

import (
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

// Validate returns every mistake in one error, each with its field, or nil. A field that
// the Kind or the Jitter ignores must be zero. An invalid schedule does not panic: it uses
// the nearest valid value, or the default.
func (s Schedule) Validate() error {
	var l problem.List
	l.Check(s.Kind <= Ethernet, "Kind", s.Kind, kindsAllowed)
	l.Check(s.Jitter <= Proportional, "Jitter", s.Jitter, jittersAllowed)
	switch s.Kind {
	case Immediate:
		l.Check(s.Jitter == Full || s.Jitter == None || s.Jitter > Proportional,
			"Jitter", s.Jitter, "full or none, because an immediate retry waits for nothing")
		const none = "zero, because an immediate retry waits for nothing"
		l.Check(s.Base == 0, "Base", s.Base, none)
		l.Check(s.Cap == 0, "Cap", s.Cap, none)
		l.Check(s.Floor == 0, "Floor", s.Floor, none)
		l.Check(!s.FastFirst, "FastFirst", s.FastFirst, "false, because the retry is immediate as it is")
	case Ethernet:
		l.Check(s.Jitter == Full || s.Jitter > Proportional,
			"Jitter", s.Jitter, "full, because IEEE 802.3 draws from the whole window")
		l.Check(s.Base >= 0 && s.Base <= etherMaxSlot, "Base", s.Base,
			fmt.Sprintf("zero or a positive duration of at most %v", time.Duration(etherMaxSlot)))
		const none = "zero, because IEEE 802.3 fixes the window"
		l.Check(s.Cap == 0, "Cap", s.Cap, none)
		l.Check(s.Floor == 0, "Floor", s.Floor, none)
	default:
		s.validateWait(&l)
	}
	s.validateFactor(&l)
	return l.Err()
}

// validateWait checks Base, Cap and Floor against each other.
func (s Schedule) validateWait(l *problem.List) {
	const duration = "zero or a positive duration"
	l.Check(s.Base >= 0, "Base", s.Base, duration)
	switch {
	case s.Cap < 0:
		l.Add("Cap", s.Cap, duration)
	case s.Cap > 0 && s.Cap < s.Base:
		l.Add("Cap", s.Cap, fmt.Sprintf("zero or at least Base (%v)", s.Base))
	}
	l.Check(s.Jitter != Decorrelated || s.Kind == Exponential || s.Kind > Ethernet,
		"Jitter", s.Jitter, "another one, because decorrelated jitter grows by itself and goes with kind exponential only")
	p := s.plan()
	switch {
	case s.Floor < 0:
		l.Add("Floor", s.Floor, duration)
	case s.Floor == 0:
	case s.Jitter == None:
		l.Check(s.Floor <= p.cap, "Floor", s.Floor, fmt.Sprintf("zero or at most Cap (%v)", p.cap))
	default:
		l.Check(s.Floor < p.base, "Floor", s.Floor,
			fmt.Sprintf("zero or less than Base (%v), so that jitter has room above it", p.base))
	}
}

func (s Schedule) validateFactor(l *problem.List) {
	switch {
	case s.Factor == 0:
	case s.Kind != Exponential && s.Kind <= Ethernet:
		l.Add("Factor", s.Factor, "zero, because only kind exponential has a factor")
	case s.Jitter == Decorrelated:
		l.Add("Factor", s.Factor, "zero, because decorrelated jitter grows by itself")
	default:
		l.Check(s.Factor >= 1 && !math.IsInf(s.Factor, 1), "Factor", s.Factor, "zero or a number of at least 1")
	}
}
