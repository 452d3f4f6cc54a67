package lull

import (
	"context"

	"github.com/lullgo/lull/internal/attempt"
)

// An Attempt describes the attempt that an operation runs as. The operation gets it from its
// context.
type Attempt struct {
	Dependency string
	Operation  string
	Number     int  // from 1
	Of         int  // the most that the policy allows
	Hedge      bool // it began while another attempt of the call was under way
}

// AttemptFrom returns which attempt the context belongs to. A first attempt whose
// timeout is no nearer than its caller's deadline runs in the caller's own
// context, so as to cost nothing: then ok is false, and Number is 1.
func AttemptFrom(ctx context.Context) (a Attempt, ok bool) {
	if c := attempt.From(ctx); c != nil {
		return Attempt{Dependency: *c.Dependency, Operation: c.Operation, Number: int(c.Number), Of: c.State.Plan().Attempts(), Hedge: c.Hedge}, true
	}
	return Attempt{Number: 1}, false
}

// Progress notes that the attempt whose context ctx is makes progress: its
// AttemptTimeout starts anew, up to the call's deadline. An operation that sends a
// long stream calls it for each piece that was taken, so that an upload is bounded
// by how long it stands still, not by its length. It does nothing for a context that
// has ended, was detached, or has no timeout of its own. It may be called
// concurrently, and costs a clock read.
func Progress(ctx context.Context) {
	if c := attempt.From(ctx); c != nil {
		c.Extend(c.State.Plan().AttemptTimeout())
	}
}
