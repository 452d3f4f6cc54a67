package main

import (
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/lullgo/lull/internal/must"
)

func startServer() (url string, shutdown func()) {
	dir := must.Have(os.MkdirTemp("", "lull-outage"))
	s := must.Have(server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true}))
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
