package lullsqs

import (
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/problem"
)

func TestConfigsThatCannotBe(t *testing.T) {
	good := Config{Queue: "https://sqs.eu-central-1.amazonaws.com/1/orders", DeadLetters: "https://sqs.eu-central-1.amazonaws.com/1/orders-dead"}
	for _, c := range []struct {
		change func(*Config)
		fields string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.DeadLetters = "" }, ""},
		{func(c *Config) { c.Queue = "http://127.0.0.1:4566/0/orders" }, ""},
		{func(c *Config) { c.Wait, c.MaxDelay = time.Second, time.Second }, ""},
		{func(c *Config) { c.Wait, c.MaxDelay = 20*time.Second, 11*time.Hour }, ""},
		{func(c *Config) { c.Queue += ".fifo"; c.DeadLetters += ".fifo" }, ""},
		{func(c *Config) { *c = Config{} }, "Queue"},
		{func(c *Config) { c.Queue, c.DeadLetters = "orders", "dead" }, "Queue DeadLetters"},
		{func(c *Config) { c.Queue = "arn:aws:sqs:eu-central-1:1:orders" }, "Queue"},
		{func(c *Config) { c.Queue = "https://sqs.eu-central-1.amazonaws.com/" }, "Queue"},
		{func(c *Config) { c.DeadLetters = c.Queue }, "DeadLetters"},
		{func(c *Config) { c.Queue += ".fifo" }, "DeadLetters"},
		{func(c *Config) { c.DeadLetters += ".fifo" }, "DeadLetters"},
		{func(c *Config) { c.Wait, c.MaxDelay = 21*time.Second, 11*time.Hour+1 }, "Wait MaxDelay"},
		{func(c *Config) { c.Wait, c.MaxDelay = -1, -1 }, "Wait MaxDelay"},
		{func(c *Config) { c.Wait, c.MaxDelay = 1500*time.Millisecond, 1500*time.Millisecond }, "Wait MaxDelay"},
		{func(c *Config) { c.Wait, c.MaxDelay = 1<<63-1, 1<<63-1 }, "Wait MaxDelay"},
	} {
		config := good
		c.change(&config)
		err := config.Validate()
		if got := strings.Join(problem.Fields(err), " "); got != c.fields {
			t.Errorf("%+v: %v, want problems of %q", config, err, c.fields)
		}
		if _, made := New(newFake(), config); (made == nil) != (err == nil) {
			t.Errorf("%+v: New says %v", config, made)
		}
	}
	if _, err := New(nil, good); err == nil {
		t.Error("a queue without a client")
	}
}

func FuzzConfig(f *testing.F) {
	f.Add("https://x/y", "https://x/z.fifo", int64(1), int64(1))
	f.Fuzz(func(t *testing.T, queue, dead string, wait, delay int64) {
		c := Config{Queue: queue, DeadLetters: dead, Wait: time.Duration(wait), MaxDelay: time.Duration(delay)}
		q, err := New(newFake(), c)
		if err != nil {
			return
		}
		can := q.Capabilities()
		if can.MaxDelay < time.Second || can.MaxLease < 59*time.Minute || can.MaxDelay+can.MaxLease >= 12*time.Hour {
			t.Errorf("%+v: %+v", c, can)
		}
	})
}
