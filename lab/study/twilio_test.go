package study_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/server/idempotency"
)

// The chain of Twilio's incident of 2013, with the queue and the record of keys that ship. A customer has made five
// calls by telephone, and each is an event. An event is paid from the balance. If there is none, the customer's card is
// charged for two events first. Then the balance is written, if it can be.
func TestTwilio2013(t *testing.T) {
	const events = 5
	for _, c := range []struct {
		key                   string
		of                    func(m *queue.Message, written int) string
		healthy, silent, loud int
	}{
		{"none", func(*queue.Message, int) string { return "" }, 3, 5, 15},
		{"of each attempt", func(m *queue.Message, _ int) string { return m.ID + "-" + strconv.Itoa(m.Attempt) }, 3, 5, 15},
		{"of the event", func(m *queue.Message, _ int) string { return m.ID }, 3, 5, 5},
		{"of the charge", func(_ *queue.Message, written int) string { return "alice-" + strconv.Itoa(written) }, 3, 1, 1},
	} {
		for _, w := range []struct {
			write string
			err   error // of a write
			want  int   // charges
		}{{"is done", nil, c.healthy}, {"is lost without a word", errLost, c.silent}, {"fails", errReadOnly, c.loud}} {
			synctest.Test(t, func(t *testing.T) {
				charges := chargesFor(t, events, c.of, w.err)
				t.Logf("the key is %-15s, the write %-22s: %2d charges", c.key, w.write, charges)
				check.Equal(t, charges, w.want, "key %s, the write %s: charges", c.key, w.write)
			})
		}
	}
}

var (
	errLost     = errors.New("the balance was not written, and nobody is told")
	errReadOnly = lull.Transient(errors.New("READONLY You can't write against a read only replica"))
)

func quiet(context.Context, queue.Event) {}

// chargesFor returns how often the card is charged for so many events of one customer.
func chargesFor(t *testing.T, events int, key func(m *queue.Message, written int) string, write error) (charges int) {
	// The bank.
	store := must.Have(idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{}))
	keys := must.Have(idempotency.New(store, idempotency.Config{}, idempotency.WithScope(idempotency.SharedScope)))
	charge := http.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { charges++ }))

	balance, written := 0, 0 // written is how often the balance has been charged, and is kept with it
	handle := func(ctx context.Context, m *queue.Message) error {
		paid := balance
		if balance == 0 {
			r := httptest.NewRequestWithContext(ctx, "POST", "/charges", strings.NewReader("alice"))
			if k := key(m, written); k == "" {
				charge.ServeHTTP(httptest.NewRecorder(), r)
			} else {
				r.Header.Set("Idempotency-Key", strconv.Quote(k))
				keys.Wrap(charge).ServeHTTP(httptest.NewRecorder(), r)
			}
			paid += 2
		}
		switch {
		case write == nil:
			written += (paid - balance + 1) / 2
			balance = paid - 1
		case write != errLost:
			return write
		}
		return nil
	}

	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	broker := must.Have(queue.NewMemoryBroker(queue.MemoryBrokerConfig{}))
	for range events {
		must.Succeed(broker.Send(ctx, queue.Outgoing{}))
	}
	policy := queue.Policy()
	policy.Attempts = 3
	policy.Breaker = breaker.Config{Off: true}
	d := must.Have(lull.NewDependency("bank", policy))
	must.Succeed(must.Have(queue.New("events", broker, d, handle, queue.Config{Concurrency: 1}, queue.WithObserver(quiet))).Run(ctx))
	return charges
}
