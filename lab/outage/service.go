package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/sleep"
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
	if err := sleep.For(ctx, time.Until(now.Add(10*time.Millisecond))); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.times[id]++; v.times[id] == 1 {
		v.first[id] = time.Now()
	}
	return nil
}

// count fills in what has become of the messages. The backlog is that of the first n.
func (v *service) count(r *result, n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r.attempts, r.during = v.calls, v.refused
	r.left = r.messages - len(v.times) - r.dead
	var last time.Time
	for id, times := range v.times {
		if times > 1 {
			r.twice++
		}
		_, number, _ := strings.Cut(id, "-")
		if i, err := strconv.Atoi(number); err == nil && i < n && v.first[id].After(last) {
			last = v.first[id]
		}
	}
	r.backlog = max(last.Sub(v.downUntil), 0)
}
