package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
)

// service is the service that the handlers of one consumer call.
type service struct {
	downFrom, downUntil time.Time

	mu      sync.Mutex
	calls   int
	refused int
	times   map[string]int       // how often each message was handled
	first   map[string]time.Time // when it was for the first time
}

var errDown = errors.New("503 Service Unavailable")

// call takes 10 ms, or fails at once.
func (v *service) call(ctx context.Context, id string) error {
	now := time.Now()
	down := !now.Before(v.downFrom) && now.Before(v.downUntil)
	v.mu.Lock()
	v.calls++
	if down {
		v.refused++
	}
	v.mu.Unlock()
	if down {
		return errDown
	}
	if err := sleepUntil(ctx, now.Add(10*time.Millisecond)); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.times[id]++; v.times[id] == 1 {
		v.first[id] = time.Now()
	}
	return nil
}

// soFar is how many messages were handled, and how many more than once.
func (v *service) soFar() (handled, twice int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range v.times {
		if n > 1 {
			twice++
		}
	}
	return len(v.times), twice
}

// counts is how often it was called, and how often while it was down.
func (v *service) counts() (calls, refused int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.calls, v.refused
}

// backlog is how long after the outage the last of the first n messages was handled.
func (v *service) backlog(n int) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	var last time.Time
	for id, at := range v.first {
		_, number, _ := strings.Cut(id, "-")
		if i, err := strconv.Atoi(number); err == nil && i < n && at.After(last) {
			last = at
		}
	}
	return max(last.Sub(v.downUntil), 0)
}
