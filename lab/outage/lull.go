package main

import (
	"context"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// policy is that of ours. Tests wait less.
var policy = queue.Policy()

func ours(ctx context.Context, at place, handle handler) (letters func() int, stop func()) {
	conn, js := connect(at.url)
	config := lullnats.Config{Stream: at.stream, Consumer: "lull", Subject: at.subject}
	must.Succeed(lullnats.Declare(ctx, js, config))
	broker := must.Have(lullnats.Open(ctx, js, config))
	service := must.Have(lull.NewDependency("service", policy))
	consumer := must.Have(queue.New(at.stream, broker, service, func(ctx context.Context, m *queue.Message) error {
		err := handle(ctx, string(m.Body))
		if err == errDown {
			return lull.Transient(err)
		}
		return err
	}, queue.Config{Concurrency: at.workers, Drain: time.Second}))
	run, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(run) }()
	dead := func() int {
		return int(must.Have(js.Stream(context.Background(), config.WithDefaults().DeadLetters)).CachedInfo().State.Msgs)
	}
	return dead, func() {
		end()
		<-ended
		conn.Close()
	}
}
