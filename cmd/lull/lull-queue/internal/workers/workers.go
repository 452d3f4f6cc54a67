// Package workers hands the cells of lull simulate and lull battery out to other machines, through
// NATS JetStream.
//
// Cells are messages of a queue, LULL_CELLS, and workers are its consumers: a cell whose worker dies is
// delivered to another when its lease has lapsed, one that cannot be flown becomes a dead letter. Results are
// values of the bucket LULL_RESULTS, where the one who asked watches for them. A cell that is flown
// twice has the same result twice, so nothing has to happen exactly once.
package workers

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/internal/cells"
	"github.com/lullgo/lull/cmd/lull/lull-queue/internal/brokers"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

const (
	stream  = "LULL_CELLS"
	subject = "lull.cells."
	bucket  = "LULL_RESULTS"
	// kept is for how long results are kept: a run that is begun again takes what is there.
	kept = 24 * time.Hour
)

// Headers of the message of a cell.
const (
	headerBuild  = "Lull-Build"  // of the program that asks
	headerResult = "Lull-Result" // the name of the result
	headerRun    = "Lull-Run"    // who asks
)

// policy is that of the workers. A cell takes as long as it takes.
func policy() lull.Policy {
	p := queue.Policy()
	p.AttemptTimeout = lull.NoTimeout
	return p
}

func config() lullnats.Config {
	return lullnats.Config{Stream: stream, Consumer: "workers", Subject: subject + "*", Policy: policy()}
}

// A server is a connection, with everything declared.
type server struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	results jetstream.KeyValue
	calls   *lull.Dependency // the server itself
}

func connect(ctx context.Context, address, name string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls"}, u.Scheme) {
		return nil, errors.New("want a URL of NATS, such as nats://host:4222")
	}
	s := &server{}
	if s.calls, err = lull.NewDependency("nats", lull.Policy{}); err != nil {
		return nil, err
	}
	if s.conn, s.js, err = brokers.NATS(u, nats.Name(name), nats.MaxReconnects(-1)); err != nil {
		return nil, err
	}
	err = lullnats.Declare(ctx, s.js, config())
	if err == nil {
		s.results, err = s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket, TTL: kept, Description: "results of lull's cells"})
	}
	if err != nil {
		s.conn.Close()
		return nil, err
	}
	return s, nil
}

// call makes a call to the server under the zero policy.
func (s *server) call(ctx context.Context, op func(context.Context) error) error {
	return lull.Run(ctx, s.calls, func(ctx context.Context) error {
		err := op(ctx)
		if err == nil || errors.Is(err, nats.ErrMaxPayload) {
			return err
		}
		return lull.Transient(err)
	})
}

// packed returns a result as it is kept.
func packed(r cells.Result) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err = z.Write(text); err == nil {
		err = z.Close()
	}
	return b.Bytes(), err
}

func unpacked(value []byte) (json.RawMessage, error) {
	z, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", bucket, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", bucket, err)
	}
	return text, nil
}
