// Package ports finds ports of 127.0.0.1 for servers of tests that stop and start again.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// The operating system gives ports from 32768 on (Linux; from 49152 on elsewhere) to listeners that ask for any, and to
// clients. Ports below are safe from those while a server is away.
const first, count = 20_000, 12_000

// Free sets each to a port of its own on which nobody listens.
func Free(all ...*int) error {
	for _, port := range all {
		l, err := listen()
		if err != nil {
			return err
		}
		defer l.Close() // after all have one
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

func listen() (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+rand.IntN(count))); err == nil {
			return l, nil
		}
	}
	return nil, err
}
