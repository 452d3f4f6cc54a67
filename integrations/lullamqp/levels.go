package lullamqp

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// The delay levels: level l is a queue in which every message waits for unit << l, and an
// exchange before it. A delay is a number of units; each of its bits says whether the
// message goes through the level's queue or past it.
//
// These are not configurable: programs that share a prefix must agree on them.
const (
	levels = 22
	unit   = 20 * time.Millisecond
)

// MaxDelay is the longest delay through the levels: 23 hours and 18 minutes.
const MaxDelay = (1<<levels-1)*unit - slack

// slack is what may have to be added to a delay: see units.
const slack = levels*time.Millisecond + unit

// units is how many units make a delay of at least d. The broker keeps time in whole
// milliseconds: a message that arrives within one counts from its beginning, in every
// level that it waits in. So a millisecond is added for each.
func units(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	n := ceil(d)
	for {
		short := time.Duration(n)*unit - d - time.Duration(bits.OnesCount32(n))*time.Millisecond
		if short >= 0 {
			return n
		}
		n++
	}
}

func ceil(d time.Duration) uint32 { return uint32((d + unit - 1) / unit) }

// delayed is where a message for the queue is published to, to come there after n units:
// an exchange and a routing key. After none that is the queue itself.
func (c *Config) delayed(n uint32) (exchange, key string) {
	if n == 0 {
		return "", c.Queue
	}
	return c.level(bits.Len32(n) - 1), levelKey(n, c.Queue)
}

// levelKey is the bits of n, the highest level first, and the queue: so each level looks at
// the word in its place, and the last exchange at all behind them.
func levelKey(n uint32, queue string) string {
	key := make([]byte, 0, 2*levels+len(queue))
	for l := levels - 1; l >= 0; l-- {
		key = append(key, '0'+byte(n>>l&1), '.')
	}
	return string(append(key, queue...))
}

// level is the name of a level's exchange and queue.
func (c *Config) level(l int) string { return fmt.Sprintf("%s.delay-%02d", c.Prefix, l) }

// deliver is the exchange behind the last level: it hands on to the queues.
func (c *Config) deliver() string { return c.Prefix + ".delay-deliver" }

// lost is an exchange and a queue for what waited in the levels while its queue was
// deleted. Without it such messages would stay in a level for ever, where nobody sees them,
// and the broker would try to hand them on every few minutes.
func (c *Config) lost() string { return c.Prefix + ".delay-lost" }

// bitPattern is for messages whose bit for level l is the given one.
func bitPattern(l int, bit string) string {
	return strings.Repeat("*.", levels-1-l) + bit + ".#"
}

// queuePattern is for messages to the queue, and no other: the number of words before it
// is said, as names may have dots in them.
func queuePattern(queue string) string { return strings.Repeat("*.", levels) + queue }
