package redial_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/integrations/redial"
)

// A connection is kept until the server has no more for this client.
func ExampleKeep() {
	d, err := lull.NewDependency("feed", lull.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	g, err := redial.New(d, redial.Config{
		Policy:    engine.RedialPolicy{Start: time.Millisecond, Spread: time.Millisecond, Lasting: time.Hour, Backoff: backoff.Schedule{Base: time.Millisecond, Cap: time.Millisecond}}, // for an example
		DownAfter: 5 * time.Minute,
		Down:      func(since time.Duration, last error) { log.Printf("no feed for %v: %v", since, last) },
	})
	if err != nil {
		log.Fatal(err)
	}
	connections := 0
	err = redial.Keep(context.Background(), g, func(context.Context) (string, error) {
		connections++
		return fmt.Sprint("connection ", connections), nil
	}, func(ctx context.Context, c string) error {
		fmt.Println(c)
		if connections == 3 {
			return lull.Permanent(errors.New("the feed has ended"))
		}
		return io.ErrUnexpectedEOF
	})
	fmt.Println(err)
	// Output:
	// connection 1
	// connection 2
	// connection 3
	// the feed has ended
}

// What the response to an upgrade asks for is what the next dial waits for.
func ExampleUpgrade() {
	resp := &http.Response{StatusCode: 503, Status: "503 Service Unavailable", Header: http.Header{"Retry-After": {"20"}}}
	err := redial.Upgrade(errors.New("websocket: bad handshake"), resp)
	fmt.Println(lull.Classify(err).After, err)
	// Output: 20s websocket: bad handshake
}

// A server has announced that it closes its connections within the next minute.
func ExampleDrain() {
	fmt.Println(redial.Drain(nil, time.Minute))
	// Output: redial: the server drains its connections
}

// The retry field of server-sent events.
func ExampleParseRetry() {
	fmt.Println(redial.ParseRetry("3000"))
	// Output: 3s true
}
