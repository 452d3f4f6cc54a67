//go:build servers

package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// Every message of every consumer is accounted for, and lull loses none.
func TestOutage(t *testing.T) {
	// A tenth of the waits: a short outage, but as long against them.
	policy.Backoff.Base /= 10
	policy.Breaker.OpenFor /= 10
	defer func() { policy = queue.Policy() }()
	s := setting{rate: 60, before: time.Second / 2, outage: time.Second, after: time.Second / 2, workers: 4, patience: 5 * time.Minute}
	var out bytes.Buffer
	results := must.Have(compare(context.Background(), s, &bytes.Buffer{}))
	must.Succeed(report(&out, s, results))
	t.Log("\n" + out.String())
	for _, r := range results {
		if r.messages != 120 || r.left > 0 || r.dead > r.messages || r.attempts < r.messages-r.dead || r.during > r.attempts {
			t.Errorf("%s: %+v", r.name, r)
		}
		if r.during == 0 {
			t.Errorf("%s made no attempt in the outage: this test tells nothing", r.name)
		}
		if r.name == "lull" && r.dead != 0 {
			t.Errorf("lull: %d dead letters", r.dead)
		}
	}
}
