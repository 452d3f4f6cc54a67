//go:build servers

package main

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/rabbitmq"
	"github.com/lullgo/lull/internal/seed"
)

func TestMain(m *testing.M) {
	if runPart() {
		return
	}
	pace.Overlap(2)
	handOn, settle = 2*time.Second, time.Second
	os.Exit(m.Run())
}

// A short form of the whole: nothing is lost, on either broker.
func TestNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("it is not short to kill processes")
	}
	for _, name := range []string{"rabbitmq", "nats"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setting{brokers: name, messages: 300, time: 6 * time.Second, workers: 4, server: 2 * time.Second, seed: seed.Fresh(t)}
			var out, progress bytes.Buffer
			err := run(t.Context(), s, &out, &progress)
			if errors.Is(err, rabbitmq.ErrAbsent) && os.Getenv("CI") == "" {
				t.Skip(err)
			}
			check.Equal(t, err, nil, "%s", &progress)
			t.Logf("%s", &out)
		})
	}
}
