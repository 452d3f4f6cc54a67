package lullamqp

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The sizes are those that the client sends.
func TestFieldSize(t *testing.T) {
	t.Parallel()
	for n, v := range map[int]any{
		1: nil, 2: true, 3: int16(1), 5: int32(1), 9: time.Time{}, 6: amqp.Decimal{}, 8: "abc", 7: []byte("ab"), 10: []any{"", nil}[:1], 13: amqp.Table{"ab": 1},
	} {
		if n == 10 {
			n = 5 + 5
		}
		if got := fieldSize(v); got != n {
			t.Errorf("%T: %d bytes, want %d", v, got, n)
		}
	}
}
