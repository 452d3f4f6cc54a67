// Package servers has the servers that lull probe is shown with.
package servers

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/admission"
	"github.com/lullgo/lull/server/idempotency"
)

// The paths of both servers.
const (
	Orders   = "/orders"   // a GET takes 50 ms
	Slow     = "/slow"     // a GET takes 1.2 s
	Payments = "/payments" // a POST is carried out
	Fails    = "/fails"    // a POST fails with 500
)

// Plain returns a server of net/http alone.
func Plain() http.Handler {
	mux := http.NewServeMux()
	work := func(d time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
				fmt.Fprintln(w, "{}")
			case <-r.Context().Done():
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	}
	mux.HandleFunc("GET "+Orders, work(50*time.Millisecond))
	mux.HandleFunc("GET "+Slow, work(1200*time.Millisecond))
	mux.HandleFunc("POST "+Payments, done(http.StatusCreated))
	mux.HandleFunc("POST "+Fails, done(http.StatusInternalServerError))
	return mux
}

// done answers with what was not there before.
func done(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, "{\"id\":%q}\n", rand.Text())
	}
}

// Lull returns the same behind lull's handlers: two requests at a time, keys, deadlines.
func Lull() (http.Handler, error) {
	store, err := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
	if err != nil {
		return nil, err
	}
	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithScope(idempotency.SharedScope))
	if err != nil {
		return nil, err
	}
	limit, err := admission.NewMiddleware(admission.Config{Limit: 2, MaxWait: 200 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	plain := Plain()
	mux := http.NewServeMux()
	mux.Handle("POST /", keys.Wrap(plain))
	mux.Handle("GET /", limit.Handler(plain))
	return lullhttp.NewHandler(mux)
}
