package main

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A load makes calls at a steady rate. They do not wait for one another, as the users
// of a service do not: slow answers do not make it less.
type load struct {
	client *http.Client
	url    string
	rate   int // calls a second

	calls atomic.Int64 // that have begun
}

// run makes calls for as long, and returns how long they took, shortest first.
func (l *load) run(duration time.Duration) ([]time.Duration, error) {
	took := make([]time.Duration, int(duration.Seconds()*float64(l.rate)))
	errs := make([]error, len(took))
	var calls sync.WaitGroup
	start := time.Now()
	for i := range took {
		time.Sleep(time.Until(start.Add(time.Second * time.Duration(i) / time.Duration(l.rate))))
		l.calls.Add(1)
		calls.Go(func() {
			began := time.Now()
			errs[i] = l.call()
			took[i] = time.Since(began)
		})
	}
	calls.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("call %d of %d: %w", i+1, len(errs), err)
		}
	}
	slices.Sort(took)
	return took, nil
}

// call makes one call as any client would. Nothing in it knows of hedging.
func (l *load) call() error {
	resp, err := l.client.Get(l.url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// percentile is the least of the sorted values that the share p does not exceed.
func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}
