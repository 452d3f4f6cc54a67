package bulkhead

import "testing"

// The shortest wait is one, and is refused where nobody waits.
func TestTheShortestWaitNeedsALimit(t *testing.T) {
	if err := (Config{MaxWait: 1}).Validate(); err == nil {
		t.Error("a wait without a limit is valid")
	}
	if err := (Config{MaxWait: 1, InFlight: 1}).Validate(); err != nil {
		t.Error(err)
	}
}
