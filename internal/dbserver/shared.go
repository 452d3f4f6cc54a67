package dbserver

import (
	"errors"
	"os"
	"sync"
	"testing"
)

// A Shared starts the servers of a package's tests: one that they share, when the first of them needs it, and others that
// belong to one test.
type Shared struct {
	Start func() (*Server, error)

	once   sync.Once
	server *Server
	err    error
}

// Server returns the shared server.
func (s *Shared) Server() (*Server, error) {
	s.once.Do(func() { s.server, s.err = s.Start() })
	return s.server, s.err
}

// Addr returns host and port of the shared server.
func (s *Shared) Addr(t testing.TB) string {
	t.Helper()
	server, err := s.Server()
	Need(t, err)
	return server.Addr()
}

// Own starts a server that ends with the test.
func (s *Shared) Own(t testing.TB) *Server {
	t.Helper()
	server, err := s.Start()
	Need(t, err)
	t.Cleanup(server.Close)
	return server
}

// Close stops the shared server, if there is one. It is for TestMain.
func (s *Shared) Close() {
	if s.server != nil {
		s.server.Close()
	}
}

// Need fails the test with err. If the server is not installed, it skips the test, unless CI is set.
func Need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrAbsent) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
