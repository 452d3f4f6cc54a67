//go:build servers

package lullpostgres

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/idempotency"
)

// parallel runs f in 16 goroutines, and reports how often per second.
func parallel(b *testing.B, f func() error) {
	b.Helper()
	b.SetParallelism(max(1, 16/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			must.Succeed(f())
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s")
}

// BenchmarkStore has 16 workers and 16 connections. One server waits for its disk at each commit,
// which is the default, and one does not.
func BenchmarkStore(b *testing.B) {
	for _, fsync := range []string{"on", "off"} {
		b.Run("fsync="+fsync, func(b *testing.B) {
			own := dbserver.Shared{Start: func() (*dbserver.Server, error) { return start("-c", "fsync="+fsync) }}
			benchmarkStore(b, newTable(b, newPool(b, connString(own.Own(b).Addr())), Config{}))
		})
	}
}

func benchmarkStore(b *testing.B, s *Store) {
	record := bytes.Repeat([]byte("x"), 2048)
	done := request()
	must.Have(s.Claim(bg, done))
	must.Succeed(s.Complete(bg, done.Key, done.Token, record, time.Hour))
	for _, work := range []struct {
		name string
		f    func() error
	}{
		{"claim", func() error {
			_, err := s.Claim(bg, request())
			return err
		}},
		{"claim+complete", func() error {
			c := request()
			if _, err := s.Claim(bg, c); err != nil {
				return err
			}
			return s.Complete(bg, c.Key, c.Token, record, time.Hour)
		}},
		{"transact", func() error {
			_, err := s.Transact(bg, request(), func(context.Context, bool) ([]byte, bool) { return record, true })
			return err
		}},
		{"replay", func() error {
			a, err := s.Claim(bg, anew(done))
			if err == nil && a.State != idempotency.Replay {
				err = fmt.Errorf("%v", a.State)
			}
			return err
		}},
	} {
		b.Run(work.name, func(b *testing.B) { parallel(b, work.f) })
	}
}
