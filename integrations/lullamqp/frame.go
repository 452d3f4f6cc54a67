package lullamqp

import (
	"math/bits"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/queue"
)

// All properties of a message, with its headers, must fit into one frame. The server adds headers
// of its own.
const (
	roomToMove  = 16 << 10 // kept free in a new message: for the envelope, and what all levels add
	roomToCount = 128      // for x-delivery-count and x-acquired-count
)

// roomFor returns how many bytes of headers the server adds to a message that passes through the
// levels for n units: an entry of x-death for each, x-first-death-* and x-last-death-*.
func (c *Config) roomFor(n uint32) int {
	if n == 0 {
		return roomToCount
	}
	name := len(c.level(0))
	return roomToCount + 2*(100+2*name) + bits.OnesCount32(n)*(120+2*name+len(levelKey(n, c.Queue)))
}

func headerFrame(m *amqp.Publishing) int {
	n := 8 + 14 + fieldSize(m.Headers) + 1 + 1 + 8
	for _, s := range [...]string{m.ContentType, m.ContentEncoding, m.CorrelationId, m.ReplyTo, m.Expiration, m.MessageId, m.Type, m.UserId, m.AppId} {
		n += 1 + len(s)
	}
	return n
}

// fieldSize returns the size of a value of a header, with its type.
func fieldSize(v any) int {
	n := 5
	switch v := v.(type) {
	case nil:
		return 1
	case bool, byte, int8:
		return 2
	case int16, uint16:
		return 3
	case int64, float64, time.Time:
		return 9
	case amqp.Decimal:
		return 6
	case string:
		n += len(v)
	case []byte:
		n += len(v)
	case []any:
		for _, each := range v {
			n += fieldSize(each)
		}
	case amqp.Table:
		for name, each := range v {
			n += 1 + len(name) + fieldSize(each)
		}
	}
	return n
}

// shorten makes m, a dead letter with the envelope e, smaller by over bytes, and by what the envelope
// may grow. Texts and bytes are cut, other headers left out.
func shorten(m *amqp.Publishing, e *queue.Envelope, over int) {
	sizes := map[string]int{}
	for name, v := range m.Headers {
		if name != queue.EnvelopeHeader && !strings.HasPrefix(name, ownHeaders) {
			sizes[name] = 1 + len(name) + fieldSize(v)
		}
	}
	text, _ := m.Headers[queue.EnvelopeHeader].(string)
	e, keep := e.Shortened(sizes, over+queue.MaxEnvelope-len(text))
	for name, n := range keep {
		n -= 1 + len(name) + 5
		switch v := m.Headers[name].(type) {
		case string:
			m.Headers[name] = strings.ToValidUTF8(v[:min(max(n, 0), len(v))], "")
		case []byte:
			m.Headers[name] = v[:min(max(n, 0), len(v))]
		default:
			n = -1
		}
		if n < 0 {
			delete(m.Headers, name)
		}
	}
	m.Headers[queue.EnvelopeHeader] = e.Encode()
}
