//go:build servers && linux

package torture

import (
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// offer begins so many connections without a request, and resets each at once. It waits for none of them: a
// connection for which the server's queue has no room is lost. Since a reset frees its port, no port runs out.
func offer(tb testing.TB, address string, connections int) {
	to := netip.MustParseAddrPort(address)
	var left atomic.Int64
	left.Store(int64(connections))
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			at := &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())} // Connect writes to it
			for left.Add(-1) >= 0 {
				s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
				if err != nil {
					tb.Error(err)
					return
				}
				syscall.SetsockoptLinger(s, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}) // close resets
				if err := syscall.Connect(s, at); err != nil && err != syscall.EINPROGRESS {
					tb.Error(err)
				}
				syscall.Close(s)
			}
		})
	}
	group.Wait()
}

// Connections that come faster than they can be served, and go at once, end no server: it grades the next
// client.
func TestAFloodOfAttemptsToConnect(t *testing.T) {
	t.Parallel()
	s := standingServer(t)
	offer(t, addressOf(s), 10_000)
	if status, text := fetch(s.URL() + "t/once-400/after"); status != 400 {
		t.Errorf("the next client gets %d, %s", status, text)
	}
	cards := s.Cards()
	if len(cards) != 1 || len(cards[0].Results) != 1 || cards[0].Results[0].Grade != Pass {
		t.Errorf("the cards are %+v", cards)
	}
}

// What bounds a flood of connections: the attempts alone (nobody accepts), a listener that accepts and
// closes, the server, and the server with a request on each connection.
func BenchmarkFlood(b *testing.B) {
	measure := func(b *testing.B, flood func()) {
		var before, after syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		b.ResetTimer()
		flood()
		b.StopTimer()
		syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
		b.ReportMetric(float64(b.N)/b.Elapsed().Minutes(), "op/minute")
		b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
		b.ReportMetric(float64(memory.Sys)/1e6, "MB")
	}
	listen := func(b *testing.B) net.Listener {
		l := must.Have(net.Listen("tcp", "127.0.0.1:0"))
		b.Cleanup(func() { l.Close() })
		return l
	}
	b.Run("nobody", func(b *testing.B) {
		l := listen(b)
		measure(b, func() { offer(b, l.Addr().String(), b.N) })
	})
	b.Run("listener", func(b *testing.B) {
		l := listen(b)
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				conn.Close()
			}
		}()
		measure(b, func() { offer(b, l.Addr().String(), b.N) })
	})
	served := func(b *testing.B, flood func(address string)) {
		s := standingServer(b)
		measure(b, func() { flood(addressOf(s)) })
		s.gate.log.mu.Lock()
		b.ReportMetric(float64(s.gate.log.accepted)/float64(b.N), "accepted/op")
		s.gate.log.mu.Unlock()
		if status, text := fetch(s.URL() + "t/once-400/after"); status != 400 {
			b.Errorf("the next client gets %d, %s", status, text)
		}
	}
	b.Run("server", func(b *testing.B) {
		served(b, func(address string) { offer(b, address, b.N) })
	})
	b.Run("request", func(b *testing.B) {
		served(b, func(address string) {
			check.Equal(b, flood(b, address, b.N), b.N, "connections answered")
		})
	})
}
