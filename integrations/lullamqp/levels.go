package lullamqp

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// The delay levels: level l is a queue in which every message waits for unit << l, and an exchange
// before it. A delay is a number of units. Each of its bits decides whether the message goes
// through the level's queue or past it.
//
// These are not configurable: programs that share a prefix must agree on them.
const (
	levels = 22
	unit   = 20 * time.Millisecond
)

// MaxDelay is the longest delay through the levels: 23 hours and 18 minutes.
const MaxDelay = (1<<levels-1)*unit - slack

// slack is the most that is added to a delay: see units.
const slack = levels*time.Millisecond + unit

// units returns how many units make a delay of at least d. The broker keeps time in whole
// milliseconds: in every level, a message counts from the beginning of the millisecond in which it
// arrives. So a millisecond is added for each level.
func units(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	n := uint32((d + unit - 1) / unit)
	for {
		short := time.Duration(n)*unit - d - time.Duration(bits.OnesCount32(n))*time.Millisecond
		if short >= 0 {
			return n
		}
		n++
	}
}

// delayed returns the exchange and the routing key for a message that must reach the queue after n
// units. For 0 units that is the queue itself.
func (c *Config) delayed(n uint32) (exchange, key string) {
	if n == 0 {
		return "", c.Queue
	}
	return c.level(bits.Len32(n) - 1), levelKey(n, c.Queue)
}

// levelKey returns the bits of n, the highest level first, and then the queue. Each level looks at
// the word in its place, and the last exchange at everything behind them.
func levelKey(n uint32, queue string) string {
	key := make([]byte, 0, 2*levels+len(queue))
	for l := levels - 1; l >= 0; l-- {
		key = append(key, '0'+byte(n>>l&1), '.')
	}
	return string(append(key, queue...))
}

func (c *Config) level(l int) string { return fmt.Sprintf("%s.delay-%02d", c.Prefix, l) }

// deliver returns the name of the exchange behind the last level, which hands messages on to the
// queues.
func (c *Config) deliver() string { return c.Prefix + ".delay-deliver" }

// lost returns the name of an exchange and a queue for messages whose queue was deleted while they
// waited in the levels. Without it they would stay in a level for ever, where nobody sees them, and
// the broker would try to hand them on every few minutes.
func (c *Config) lost() string { return c.Prefix + ".delay-lost" }

// bitPattern matches messages with the given bit for level l.
func bitPattern(l int, bit string) string { return strings.Repeat("*.", levels-1-l) + bit + ".#" }

// queuePattern matches messages to the queue, and no others. It fixes the number of words before
// the name, as names may contain dots.
func queuePattern(queue string) string { return strings.Repeat("*.", levels) + queue }
