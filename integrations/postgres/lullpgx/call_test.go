package lullpgx_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/cutofftest"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
)

// patient repeats as often as it takes.
var patient = lull.Policy{
	Attempts: 100, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	Backoff: backoff.Schedule{Kind: backoff.Constant, Base: 1e6},
}

func TestClassify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct {
			err  error
			want lull.Verdict
		}{
			{&pgconn.PgError{Code: "40001"}, lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "40001"}},
			{&pgconn.PgError{Code: "40003"}, lull.Verdict{Kind: lull.KindUnclassified, Code: "outcome_unknown"}},
			{&pgconn.PgError{Code: "57P01"}, lull.Verdict{Kind: lull.KindTransient, Code: "57P01"}},
			{&pgconn.PgError{Code: "23505"}, lull.Verdict{Kind: lull.KindPermanent, Code: "23505"}},
			{pgx.ErrNoRows, lull.Verdict{Kind: lull.KindSuccess}},
			{context.DeadlineExceeded, lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}},
		} {
			check.Equal(t, lullpgx.Classify(x.err), x.want, "%v", x.err)
		}
		// When it has no connection, a program of lull.Do has sent nothing.
		for _, to := range []string{"127.0.0.1:1", hangsUp(t)} {
			config := must.Have(pgconn.ParseConfig(url(to)))
			config.DialFunc = memnet.Dial
			_, err := pgconn.ConnectConfig(t.Context(), config)
			if v := lullpgx.Classify(err); v.Kind != lull.KindTransient || !v.NeverSent {
				t.Errorf("%v: %+v", err, v)
			}
		}
		if lullpgx.ErrOutcomeUnknown != lullsql.ErrOutcomeUnknown {
			t.Error("a program that uses both packages has to ask for two errors")
		}
	})
}

// What ended an attempt that waits for a connection is decided by who ended its context.
func TestWhoCutTheAttemptOff(t *testing.T) {
	cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
		var attempt atomic.Value // dials outlast their calls
		d := newDependency(t, p)
		pool := open(t, url("127.0.0.1:1"), d, lullpgx.Config{}, func(c *pgxpool.Config) {
			c.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return nil, attempt.Load().(func(context.Context) error)(ctx)
			}
		})
		return func(ctx context.Context, f func(context.Context) error) error {
			attempt.Store(f)
			_, err := lullpgx.Exec(ctx, d, pool, "SELECT 1")
			return err
		}
	})
}
