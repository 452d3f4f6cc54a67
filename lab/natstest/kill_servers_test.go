//go:build servers

package natstest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/lullgo/lull"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/queue"
)

// serveHere makes a process a server: its port and its directory.
const serveHere = "LULLNATS_TEST_SERVER"

// child is a server in a process of its own, to be killed.
type child struct {
	t    *testing.T
	dir  string
	port int
	cmd  *exec.Cmd
}

func (c *child) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", c.port) }

func (c *child) start() {
	c.t.Helper()
	self, err := os.Executable()
	must(c.t, err)
	c.cmd = exec.Command(self, "-test.run=^TestServerKilled$")
	c.cmd.Env = append(os.Environ(), fmt.Sprint(serveHere, "=", c.port, " ", c.dir))
	c.cmd.Stderr = os.Stderr
	_, err = c.cmd.StdinPipe() // it ends when this process does
	must(c.t, err)
	out, err := c.cmd.StdoutPipe()
	must(c.t, err)
	must(c.t, c.cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "serving %d", &c.port); err == nil {
			go io.Copy(io.Discard, out)
			return
		}
	}
	c.kill()
	c.t.Fatal("the server does not start")
}

func (c *child) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

func serve(t *testing.T, what string) {
	r := &running{}
	if _, err := fmt.Sscanf(what, "%d %s", &r.port, &r.dir); err != nil {
		t.Fatal(err)
	}
	for {
		err := r.start()
		if err == nil {
			break
		}
		if e := (*net.OpError)(nil); !errors.As(err, &e) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Printf("serving %d\n", r.port)
	io.Copy(io.Discard, os.Stdin)
	r.stop()
}

// A server that is killed (kill -9) keeps every message that it has confirmed. It may forget
// deliveries and acknowledgements of its last moments. Then a message comes again, with a number
// that may not have risen.
func TestServerKilled(t *testing.T) {
	if what := os.Getenv(serveHere); what != "" {
		serve(t, what)
		return
	}
	if testing.Short() {
		t.Skip("it is not short to kill processes")
	}
	t.Parallel()
	for _, pause := range []time.Duration{0, time.Second} {
		c := &child{t: t, dir: t.TempDir()}
		must(t, ports.Free(&c.port))
		c.start()
		t.Cleanup(c.kill)
		nc, js, err := dial(c.url())
		must(t, err)
		defer nc.Close()
		b := &bench{TB: t, js: js, c: fresh(lullnats.Config{Lease: 5 * time.Second, Policy: lull.Policy{Attempts: 50}})}
		b.ok(lullnats.Declare(bg, js, b.c))
		b.open()
		const n = 500
		for i := range n {
			b.send(fmt.Sprint(i))
		}
		acked, attempts := map[string]bool{}, map[string]int{}
		for len(attempts) < n {
			got, err := b.Receive(bg, queue.Want{Max: 10, Lease: time.Second})
			b.ok(err)
			for _, d := range got {
				body := string(d.Body)
				attempts[body] = d.Attempt
				o := queue.Ack
				if len(attempts)%2 == 0 && d.Attempt < 2 {
					o = queue.Retry
				}
				b.settle(d, queue.Settlement{Outcome: o})
				acked[body] = o == queue.Ack
			}
		}
		time.Sleep(pause)
		c.kill()
		c.start()
		b.until("it is connected", nc.IsConnected)
		again, lower := 0, 0
		left := n
		for _, done := range acked {
			if done {
				left--
			}
		}
		for deadline := time.Now().Add(patience); left > 0 && time.Now().Before(deadline); {
			got, err := b.Receive(bg, queue.Want{Max: 10, Lease: time.Second})
			if err != nil {
				continue
			}
			for _, d := range got {
				body := string(d.Body)
				if acked[body] {
					again++
				} else {
					left--
					if d.Attempt <= attempts[body] {
						lower++
					}
				}
				acked[body] = true
				b.settle(d, queue.Settlement{Outcome: queue.Ack})
			}
		}
		if left > 0 {
			t.Errorf("%d of %d messages are lost", left, n)
		}
		if pause > 0 && again+lower > 0 {
			t.Errorf("what it was told %v before is forgotten: %d acknowledgements, %d deliveries", pause, again, lower)
		}
		t.Logf("killed %v after the last word: of %d messages %d came after they had been acknowledged, %d with a number that had not risen", pause, n, again, lower)
	}
}
