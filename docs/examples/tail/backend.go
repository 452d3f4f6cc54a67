package main

import (
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/lullhttp"
)

const (
	usual = 5 * time.Millisecond
	long  = 100 * usual
)

// A backend is the service that is called. It counts what comes to it: the client
// might believe that it sends little.
type backend struct {
	every uint64 // one request in so many is slow
	seed  uint64 // of the choice, and of what the others take

	allSlow          atomic.Bool
	requests, hedges atomic.Int64 // hedges are among the requests
}

func newBackend(every, seed uint64) *backend {
	return &backend{every: every, seed: seed}
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := b.requests.Add(1)
	if r.Header.Get(lullhttp.DefaultAttemptHeader) != "" { // it is there from the second attempt of a call on
		b.hedges.Add(1)
	}
	select {
	case <-time.After(b.takes(uint64(n))):
		io.WriteString(w, "done\n")
	case <-r.Context().Done(): // the other attempt has won, so nobody waits for this one
	}
}

// takes is how long the n-th request does: usual, and up to a quarter more or less, or
// long. Of each run of so many requests one is slow, anywhere in it. (Were it chance
// for each request by itself, a short run might have too few slow ones to show.)
func (b *backend) takes(n uint64) time.Duration {
	slow := rand.New(rand.NewPCG(b.seed, n/b.every)).Uint64N(b.every)
	if n%b.every == slow || b.allSlow.Load() {
		return long
	}
	return usual*3/4 + time.Duration(rand.New(rand.NewPCG(b.seed, ^n)).Int64N(int64(usual/2)))
}
