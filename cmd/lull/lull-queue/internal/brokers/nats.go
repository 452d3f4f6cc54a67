package brokers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

func init() { Kinds["nats"], Kinds["tls"] = openNATS, openNATS }

// stream is NATS JetStream. Its queues of dead letters are streams; messages are sent to a subject.
type stream struct {
	conn *nats.Conn
	js   jetstream.JetStream
}

func openNATS(_ context.Context, u *url.URL) (Broker, error) {
	conn, js, err := NATS(u, nats.Name("lull queue"))
	if err != nil {
		return nil, err
	}
	return &stream{conn, js}, nil
}

// NATS connects. ?creds=FILE is a file of credentials.
func NATS(u *url.URL, options ...nats.Option) (*nats.Conn, jetstream.JetStream, error) {
	options = append(options, nats.ReconnectBufSize(-1), nats.Timeout(10*time.Second))
	server := *u
	if file := u.Query().Get("creds"); file != "" {
		options = append(options, nats.UserCredentials(file))
	}
	server.RawQuery = ""
	conn, err := nats.Connect(server.String(), options...)
	if errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) {
		return nil, nil, markedAs(ErrUnreachable, err)
	}
	if err != nil {
		return nil, nil, unreachable(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, js, nil
}

func (s *stream) Letters(ctx context.Context, name string) (queue.DeadLetters, error) {
	letters, err := lullnats.LettersIn(ctx, s.js, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = markedAs(ErrNoQueue, err)
	}
	return letters, err
}

var subject = regexp.MustCompile(`^(>|([^\s.*>]+|\*)(\.([^\s.*>]+|\*))*(\.>)?)$`)

// Sender sends to a subject. If it has wildcards, letters go to the subjects that they had.
func (s *stream) Sender(ctx context.Context, name string) (queue.Sender, error) {
	if !subject.MatchString(name) {
		return nil, fmt.Errorf("%w: want a subject, such as orders.new, or orders.> for the subjects that the letters had", ErrNoQueue)
	}
	in, err := s.js.StreamNameBySubject(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, s.noSubject(ctx, name)
	case err != nil:
		return nil, err
	}
	return lullnats.NewSender(s.js, in, name)
}

const mostSubjects = 10

// noSubject returns the error for a subject that no stream has, with the subjects of the stream of that name, or of all.
func (s *stream) noSubject(ctx context.Context, name string) error {
	var there []string
	what := "no stream has this subject"
	if of, err := s.js.Stream(ctx, name); err == nil {
		what, there = "this is a stream, and no subject", of.CachedInfo().Config.Subjects
	} else {
		all := s.js.ListStreams(ctx)
		for info := range all.Info() {
			for _, each := range info.Config.Subjects {
				if !strings.HasPrefix(each, "$") {
					there = append(there, each)
				}
			}
		}
		if all.Err() != nil {
			return fmt.Errorf("%w: %s; listing the streams: %w", ErrNoQueue, what, all.Err())
		}
	}
	slices.Sort(there)
	if there = slices.Compact(there); len(there) > mostSubjects {
		there = append(there[:mostSubjects], "...")
	}
	if len(there) == 0 {
		return fmt.Errorf("%w: %s", ErrNoQueue, what)
	}
	return fmt.Errorf("%w: %s; there are %s", ErrNoQueue, what, strings.Join(there, ", "))
}

func (s *stream) Close() error {
	s.conn.Close()
	return nil
}
