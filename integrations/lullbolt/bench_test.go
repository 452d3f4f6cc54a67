package lullbolt

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

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

// BenchmarkStore has 16 workers: a new key claimed and completed with 2 KiB; a claim alone; and the
// answer to a repeated request.
func BenchmarkStore(b *testing.B) {
	record := bytes.Repeat([]byte("x"), 2048)
	ctx := context.Background()
	for _, sync := range []bool{true, false} {
		b.Run(fmt.Sprintf("sync=%v/claim+complete", sync), func(b *testing.B) {
			s := open(b, temp(b), Config{NoSync: !sync})
			parallel(b, func() error {
				c := request()
				if _, err := s.Claim(ctx, c); err != nil {
					return err
				}
				return s.Complete(ctx, c.Key, c.Token, record, time.Hour)
			})
		})
		b.Run(fmt.Sprintf("sync=%v/claim", sync), func(b *testing.B) {
			s := open(b, temp(b), Config{NoSync: !sync})
			parallel(b, func() error {
				_, err := s.Claim(ctx, request())
				return err
			})
		})
	}
	b.Run("alone/claim", func(b *testing.B) {
		s := open(b, temp(b), Config{})
		for b.Loop() {
			must.Have(s.Claim(ctx, request()))
		}
	})
	b.Run("replay", func(b *testing.B) {
		s := open(b, temp(b), Config{})
		c := request()
		s.Claim(ctx, c)
		must.Succeed(s.Complete(ctx, c.Key, c.Token, record, time.Hour))
		b.ReportAllocs()
		for b.Loop() {
			if a, err := s.Claim(ctx, c); err != nil || a.State != idempotency.Replay {
				b.Fatal(a.State, err)
			}
		}
	})
}
