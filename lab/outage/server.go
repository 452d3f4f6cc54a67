package main

import (
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/lullgo/lull/internal/must"
)

// startServer starts a NATS server with JetStream on 127.0.0.1, in a folder of its own.
func startServer() (url string, shutdown func()) {
	dir := must.Have(os.MkdirTemp("", "lull-outage"))
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		os.RemoveAll(dir)
		must.Succeed(err)
	}
	s.Start()
	shutdown = func() {
		s.Shutdown()
		s.WaitForShutdown()
		os.RemoveAll(dir)
	}
	if !s.ReadyForConnections(10 * time.Second) {
		shutdown()
		must.Fail("the NATS server does not come up")
	}
	return s.ClientURL(), shutdown
}
