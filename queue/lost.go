package queue

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// lostDeliveries remembers the messages in hand, and those whose delivery was lost: the connection or the lease ended,
// and the broker hands the message out again. Only this process knows that it did not crash meanwhile.
type lostDeliveries struct {
	mu    sync.Mutex
	of    map[string]*history
	order []string // of the ids in of, from the oldest on
}

const maxKnown = 10_000

type history struct {
	holder        *workInHand // has it in hand, or had it last
	countedLosses int         // its deliveries that were lost here, and that the broker still counts
	lostInARow    int         // of these, those since a handler ran to its end
	result        *handlerResult
}

// A handlerResult is how the handler ended in a delivery that could not be settled.
type handlerResult struct {
	disposition
	fingerprint [sha256.Size]byte
	err         error
	verdict     lull.Verdict
	failed      bool
	tries       int
}

// fingerprint returns a hash of d. Messages with the same id may differ in it.
func (d *Delivery) fingerprint() [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %q %q", d.ID, d.Enqueued.UnixNano(), d.Body, d.Headers) // fmt sorts the names
	return [sha256.Size]byte(h.Sum(nil))
}

// recordInHand records that w has its message in hand. It returns the earlier one that still has the same message in hand.
func (k *lostDeliveries) recordInHand(w *workInHand) (earlier *workInHand) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.of[w.d.ID]
	if p == nil || !w.after(p.holder) && (p.lostInARow == 0 || !p.holder.over()) {
		p = &history{} // the earlier delivery was settled after all, or it was another message with this id
		k.put(w.d.ID, p)
	}
	for earlier = p.holder; earlier != nil && earlier.over(); {
		earlier = earlier.earlier
	}
	p.holder, w.past = w, p
	return earlier
}

func (k *lostDeliveries) put(id string, p *history) {
	if k.of == nil {
		k.of = map[string]*history{}
	}
	k.of[id] = p
	k.order = append(k.order, id)
	for len(k.of) > maxKnown || len(k.order) > 2*maxKnown {
		delete(k.of, k.order[0])
		k.order = k.order[1:]
	}
}

// after reports whether w's delivery is later than other's, which was not settled.
func (w *workInHand) after(other *workInHand) bool {
	if w.c.capabilities.Losses {
		return w.d.Lost > 0
	}
	return w.d.Attempt > other.d.Attempt
}

// lookUp returns what is known of w's message: how many of its deliveries were lost, how many of these in a row, and how
// the handler ended in the last.
func (k *lostDeliveries) lookUp(w *workInHand) (seen, row int, ended *handlerResult) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := w.past
	if r := p.result; r != nil && (r.Outcome == Retry || !w.d.Enqueued.IsZero() && r.fingerprint == w.d.fingerprint()) {
		ended = r
	}
	return p.countedLosses, p.lostInARow, ended
}

// settled records that the broker has settled w's message.
func (k *lostDeliveries) settled(w *workInHand, by MessageOutcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := w.past
	switch {
	case k.of[w.d.ID] != p || p.holder != w:
	case by != Retry && by != Defer, p.countedLosses == 0 && p.lostInARow == 0, w.c.capabilities.Losses && w.tries > 0:
		delete(k.of, w.d.ID)
	default:
		p.result = nil
		if w.c.capabilities.Losses {
			p.countedLosses = 0 // the broker keeps what is left
		}
	}
}

// lost records that w's delivery is not settled, or perhaps not. f was to be its settlement.
func (k *lostDeliveries) lost(w *workInHand, f disposition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := w.past
	p.countedLosses++
	p.lostInARow++
	if w.tries == 0 {
		return
	}
	p.result = nil
	cutOff := w.err != nil && (w.cutOff == engine.CutByCaller || w.lease.isEnding()) // which is no verdict on the message
	if !cutOff && f.Outcome != Defer {
		p.lostInARow = 0
		p.result = &handlerResult{f, w.d.fingerprint(), w.err, w.verdict, w.failed, w.tries}
	}
}
