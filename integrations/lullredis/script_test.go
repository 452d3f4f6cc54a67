package lullredis

import (
	"testing"
)

func TestAnswersThatMakeNoSense(t *testing.T) {
	for _, v := range []any{
		nil, "OK", int64(3), []any{}, []any{int64(0), int64(1), int64(1), int64(0), int64(1), int64(1)},
		[]any{int64(0), int64(1), "1", int64(0), int64(1), int64(1), int64(1)},
		[]any{int64(3), int64(1), int64(1), int64(0), int64(1), int64(1), int64(1)},
		[]any{int64(0), int64(1), int64(-1), int64(0), int64(1), int64(1), int64(1)},
	} {
		if a, err := read(v); err == nil {
			t.Errorf("%v was read as %+v", v, a)
		}
	}
}
