package main

import (
	"errors"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func startServer() (url string, shutdown func(), err error) {
	dir, err := os.MkdirTemp("", "lull-outage")
	if err != nil {
		return "", nil, err
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	s.Start()
	shutdown = func() {
		s.Shutdown()
		s.WaitForShutdown()
		os.RemoveAll(dir)
	}
	if !s.ReadyForConnections(10 * time.Second) {
		shutdown()
		return "", nil, errors.New("the NATS server does not come up")
	}
	return s.ClientURL(), shutdown, nil
}
