package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

// policy is that of ours. Tests wait less.
var policy = queue.Policy()

func ours(ctx context.Context, at place, handle handler) (letters func() int, stop func(), err error) {
	conn, js, err := connect(at.url)
	if err != nil {
		return nil, nil, err
	}
	config := lullnats.Config{Stream: at.stream, Consumer: "lull", Subject: at.subject}
	if err := lullnats.Declare(ctx, js, config); err != nil {
		return nil, nil, err
	}
	broker, err := lullnats.Open(ctx, js, config)
	if err != nil {
		return nil, nil, err
	}
	service, err := lull.NewDependency("service", policy)
	if err != nil {
		return nil, nil, err
	}
	consumer, err := queue.New(at.stream, broker, service, func(ctx context.Context, m *queue.Message) error {
		err := handle(ctx, string(m.Body))
		if err == errDown {
			return lull.Transient(err)
		}
		return err
	}, queue.Config{Concurrency: at.workers, Drain: time.Second})
	if err != nil {
		return nil, nil, err
	}
	run, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(run) }()
	dead := func() int {
		s, err := js.Stream(context.Background(), config.WithDefaults().DeadLetters)
		if err != nil {
			panic(fmt.Sprint("the stream of dead letters: ", err))
		}
		return int(s.CachedInfo().State.Msgs)
	}
	return dead, func() {
		end()
		<-ended
		conn.Close()
	}, nil
}
