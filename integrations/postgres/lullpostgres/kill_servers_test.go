//go:build servers

package lullpostgres

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/server/idempotency"
)

// killMe is the variable that makes a process the victim of TestKilledAnywhere: the server's
// address, and the first key.
const killMe = "LULLPOSTGRES_TEST_VICTIM"

func numbered(n int) idempotency.Claim {
	c := request()
	c.Key = fmt.Sprint("request ", n)
	return c
}

// handle repeats request n until it is known to be done, and reports whether the handler ran here.
func handle(s *Store, n int) (ran bool, err error) {
	c := numbered(n)
	for {
		a, err := s.Transact(bg, c, func(ctx context.Context, _ bool) ([]byte, bool) {
			_, err := TxFrom(ctx).Exec(ctx, "INSERT INTO effects VALUES ($1)", strconv.Itoa(n))
			return []byte(strconv.Itoa(n)), err == nil
		})
		switch {
		case err != nil:
			return ran, err
		case a.State == idempotency.Claimed:
			ran = true
		case a.State == idempotency.Replay && string(a.Record) == strconv.Itoa(n):
			return ran, nil
		case a.State != idempotency.InFlight:
			return ran, fmt.Errorf("request %d: %v %q", n, a.State, a.Record)
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// Processes are killed at any moment, in the middle of COMMIT too, while four of their requests are
// running. In the end each request has happened once, and its record is there.
func TestKilledAnywhere(t *testing.T) {
	if at, first, ok := strings.Cut(os.Getenv(killMe), " "); ok {
		victim(t, at, first)
		return
	}
	if testing.Short() {
		t.Skip("it is not short to kill processes")
	}
	t.Parallel()
	at := place(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	next, draw := 0, seed.Rand(t)
	for range 12 {
		cmd := exec.Command(self, "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), fmt.Sprint(killMe, "=", at, " ", max(0, next-20)))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if said++; said == 25 {
				time.AfterFunc(time.Duration(draw.Int64N(int64(60*time.Millisecond))), func() { cmd.Process.Kill() })
			}
			n, ok := strings.CutPrefix(lines.Text(), "request ")
			if !ok {
				t.Errorf("the victim says %q", lines.Text())
				cmd.Process.Kill()
			}
			if n, err := strconv.Atoi(n); err == nil { // the last line may be cut off
				next = max(next, n+1)
			}
		}
		cmd.Wait()
	}
	pool := newPool(t, at)
	s, err := New(pool, Config{})
	if err != nil {
		t.Fatal(err)
	}
	rest := 0
	for n := range next {
		ran, err := handle(s, n)
		if err != nil {
			t.Fatal(err)
		}
		if ran {
			rest++
		}
	}
	var names, effects int
	if err := pool.QueryRow(bg, "SELECT count(DISTINCT name), count(*) FROM effects").Scan(&names, &effects); err != nil {
		t.Fatal(err)
	}
	t.Logf("12 processes were killed over %d requests, %d of which were run afterwards; %d effects", next, rest, effects)
	if names != next || effects != next {
		t.Errorf("%d requests have had %d effects, of %d", next, effects, names)
	}
}

func victim(t *testing.T, at, first string) {
	n, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(newPool(t, at), Config{})
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range numbers {
				fmt.Printf("request %d\n", n)
				if _, err := handle(s, n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); n++ { // it is killed long before
		numbers <- n
	}
	close(numbers)
	wg.Wait()
}
