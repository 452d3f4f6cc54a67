// Package pq has types with the forms of lib/pq's connections, which package sqlerr recognises by the path of their
// package. Its own one is tested in lullsql/sqltest.
package pq

import (
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/sqlerr"
)

type (
	status byte
	conn   struct{ txnStatus status }
	text   struct{ txnStatus string }
	none   struct{ other status }
	number byte
)

func TestIdle(t *testing.T) {
	for c, want := range map[any]bool{
		&conn{'I'}: true, &conn{'T'}: false, &conn{'E'}: false, &conn{}: false,
		&text{"I"}: false, &none{'I'}: false, number('I'): false, (*conn)(nil): false,
	} {
		check.Equal(t, sqlerr.Idle(c), want, "%#v", c)
	}
}
