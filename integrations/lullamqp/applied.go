package lullamqp

import (
	"sync"
	"time"
)

// ackTimes keeps the times of the last acknowledgements on a channel, so that the channel is not
// closed before the server has carried them out.
//
// RabbitMQ does not confirm acknowledgements. For a quorum queue the channel holds them back while
// the queue has not carried out 32 earlier commands (quorum_commands_soft_limit). When the channel
// ends, it forgets those that it holds back: these messages are delivered once more. So a channel
// that has just acknowledged many is left open for a moment.
type ackTimes struct {
	mu     sync.Mutex
	last   [safeAcks]time.Time // a ring
	next   int
	newest time.Time
}

const (
	// safeAcks is how many acknowledgements are never held back: half of 32, as other commands count too.
	safeAcks = 16
	// applyTime is how long a busy server may take to carry them out.
	applyTime = time.Second
)

func (u *ackTimes) note(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.newest, u.last[u.next] = now, now
	u.next = (u.next + 1) % safeAcks
}

// since returns how long ago the last acknowledgement was.
func (u *ackTimes) since() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Since(u.newest)
}

// keepOpen returns for how long the channel should stay open.
func (u *ackTimes) keepOpen(now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.last[u.next]) >= applyTime { // the oldest: there were few since
		return 0
	}
	return max(applyTime-now.Sub(u.newest), 0)
}
