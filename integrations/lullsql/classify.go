package lullsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/sqlerr"
)

// Classify returns the verdict on an error of database/sql or one of its drivers, and falls back
// on lull.Classify. NeverSent means here that the statement provably had no effect, because it
// did not reach the server or because the server has undone it. Use it with lull.WithClassifier
// for calls of lull.Do.
func Classify(err error) lull.Verdict { return lull.VerdictOf(err, verdict) }

func verdict(err error) lull.Verdict {
	if e, ok := errors.AsType[*dialError](err); ok {
		return Classify(lull.NeverSent(e.err))
	}
	if errors.Is(err, ErrOutcomeUnknown) {
		return lull.Verdict{Code: sqlerr.OutcomeUnknown}
	}
	if c, known := sqlerr.Classify(err); known {
		return c.Verdict
	}
	return lull.Classify(err)
}

// conflict reports whether a transaction ended with err because another one was in its way.
func conflict(err error) bool {
	c, _ := sqlerr.Classify(err)
	return c.Conflict
}

// judge returns the verdict on what an attempt on conn ended with. An error of which nothing is
// known gets one if the time of the attempt is over, or if the connection is broken.
func judge(ctx context.Context, conn *sql.Conn, err error) lull.Verdict {
	v := Classify(err)
	if v.Kind != lull.KindUnclassified || v.Code == sqlerr.OutcomeUnknown {
		return v
	}
	if ended := ctx.Err(); ended != nil {
		return lull.Classify(ended)
	}
	if broken(conn) {
		return lull.Verdict{Kind: lull.KindTransient, Code: "connection_lost"}
	}
	return v
}

// broken reports whether the connection can no longer be used, as far as its driver knows.
func broken(conn *sql.Conn) (yes bool) {
	if conn == nil {
		return false
	}
	err := conn.Raw(func(c any) error {
		v, ok := c.(driver.Validator)
		yes = ok && !v.IsValid()
		return nil
	})
	return yes || errors.Is(err, sql.ErrConnDone)
}
