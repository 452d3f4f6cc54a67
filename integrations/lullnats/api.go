package lullnats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
)

// client is a connection, and the server's API beyond package jetstream. It reads messages from the
// stream's leader. Package jetstream reads from any replica if the stream allows that, and a
// replica that lags reports a message as missing.
type client struct {
	js     jetstream.JetStream
	nc     *nats.Conn
	prefix string
}

func newClient(js jetstream.JetStream) (client, error) {
	if js == nil {
		return client{}, errors.New("lullnats: no connection to JetStream")
	}
	o := js.Options()
	k := client{js: js, nc: js.Conn(), prefix: jetstream.DefaultAPIPrefix}
	switch {
	case o.Domain != "":
		k.prefix = "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		k.prefix = strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return k, nil
}

// clientFor returns a client for a stream that somebody names.
func clientFor(js jetstream.JetStream, stream string) (client, error) {
	k, err := newClient(js)
	if err == nil && !validName.MatchString(stream) {
		err = fmt.Errorf("lullnats: the stream %q: want 1 to 100 letters, digits, hyphens and underscores", stream)
	}
	return k, err
}

// connect returns a client for the queue that c names, and c with its defaults.
func connect(js jetstream.JetStream, c Config) (k client, _ Config, err error) {
	if err := c.Validate(); err != nil {
		return k, c, fmt.Errorf("config of a queue in JetStream: %w", err)
	}
	k, err = newClient(js)
	return k, c.WithDefaults(), err
}

// stream returns a stream. The error is marked with lull.Permanent if there is no such stream.
func (k client) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := k.js.Stream(ctx, name)
	return s, found("stream "+name, err)
}

// consumer returns the server's description of a consumer. Its errors are like those of stream.
func (k client) consumer(ctx context.Context, stream, name string) (*jetstream.ConsumerInfo, error) {
	c, err := k.js.Consumer(ctx, stream, name)
	if err != nil {
		return nil, found("consumer "+name+" of "+stream, err)
	}
	return c.CachedInfo(), nil
}

func found(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case absent(err):
		return lull.Permanent(fmt.Errorf("lullnats: %s: %w", what, err))
	}
	return fmt.Errorf("lullnats: %s: %w", what, err)
}

// errAway is returned while there is no connection. nats.go would keep the request until there is
// one, and a late settlement is taken for another worker's.
var errAway = errors.New("lullnats: not connected to a server")

func (k client) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if k.nc.IsClosed() {
		return lull.Permanent(nats.ErrConnectionClosed)
	}
	if !k.nc.IsConnected() {
		return errAway
	}
	return nil
}

// ask calls the API. Its errors are *jetstream.APIError if the server has answered.
func (k client) ask(ctx context.Context, subject string, request, answer any) error {
	if err := k.ready(ctx); err != nil {
		return err
	}
	m, err := k.request(ctx, k.prefix+subject, must.Have(json.Marshal(request)))
	if err != nil {
		return err
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &failed); err != nil {
		return fmt.Errorf("lullnats: %s: %w", subject, err)
	}
	if failed.Error != nil {
		return failed.Error
	}
	if err := json.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("lullnats: %s: %w", subject, err)
	}
	return nil
}

func (k client) request(ctx context.Context, subject string, text []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m, err := k.nc.RequestWithContext(ctx, subject, text)
	return m, k.failed(subject, err)
}

// failed returns the error of a request. The server does not answer what the user may not publish.
func (k client) failed(subject string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("lullnats: %s: %w", subject, err)
	if last := k.nc.LastError(); errors.Is(last, nats.ErrPermissionViolation) {
		err = fmt.Errorf("%w (the connection's last error: %w)", err, last)
	}
	return err
}

// fetch returns a message of a consumer. To acknowledge it, call request with its Reply. It waits for
// 100 ms. nil: the server had none. (Package jetstream's fetches also return none if the server
// refuses them, or does not answer.)
func (k client) fetch(ctx context.Context, stream, consumer string) (*nats.Msg, error) {
	subject := k.prefix + "CONSUMER.MSG.NEXT." + stream + "." + consumer
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	inbox := k.nc.NewInbox()
	sub, err := k.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, k.failed(subject, err)
	}
	defer sub.Unsubscribe()
	if err := k.nc.PublishRequest(subject, inbox, []byte(`{"batch":1,"expires":100000000}`)); err != nil { // 100 ms
		return nil, k.failed(subject, err)
	}
	m, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return nil, k.failed(subject, err)
	}
	code, text := m.Header.Get("Status"), m.Header.Get("Description")
	switch {
	case code == "" || m.Reply != "":
		return m, nil
	case code == "408":
		return nil, nil
	}
	return nil, fmt.Errorf("lullnats: %s: status %s %s", subject, code, text)
}

type stored struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Raw     []byte    `json:"hdrs"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time"`

	header nats.Header
}

// message returns the first message of the stream with that sequence, or a later one, whose subject
// matches the filter. Without a filter it returns the one with that sequence, or nil.
func (k client) message(ctx context.Context, stream string, seq uint64, filter string) (*stored, error) {
	var answer struct {
		Message *stored `json:"message"`
	}
	request := struct {
		Seq  uint64 `json:"seq"`
		Next string `json:"next_by_subj,omitempty"`
	}{seq, filter}
	err := k.ask(ctx, "STREAM.MSG.GET."+stream, request, &answer)
	if isAPIError(err, jetstream.JSErrCodeMessageNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := answer.Message
	if s == nil {
		return nil, fmt.Errorf("lullnats: message %d of %s: the answer has none", seq, stream)
	}
	if len(s.Raw) > 0 {
		if s.header, err = nats.DecodeHeadersMsg(s.Raw); err != nil {
			return nil, fmt.Errorf("lullnats: headers of message %d of %s: %w", s.Seq, stream, err)
		}
	}
	return s, nil
}

// remove deletes a message of a stream. It also returns nil if the message is gone.
func (k client) remove(ctx context.Context, stream string, seq uint64) error {
	var answer struct {
		Success bool `json:"success"`
	}
	request := struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{seq, true}
	err := k.ask(ctx, "STREAM.MSG.DELETE."+stream, request, &answer)
	if err == nil && answer.Success {
		return nil
	}
	there, again := k.message(ctx, stream, seq, "")
	switch {
	case again != nil:
		return again
	case there == nil:
		return nil
	case err == nil:
		err = errors.New("the server does not say that it has")
	}
	return fmt.Errorf("lullnats: deleting message %d of %s: %w", seq, stream, err)
}

func isAPIError(err error, codes ...jetstream.ErrorCode) bool {
	var failed jetstream.JetStreamError
	return errors.As(err, &failed) && failed.APIError() != nil && slices.Contains(codes, failed.APIError().ErrorCode)
}

// absent reports whether err means that a stream, a consumer or JetStream does not exist.
func absent(err error) bool {
	return isAPIError(err, jetstream.JSErrCodeStreamNotFound, jetstream.JSErrCodeConsumerNotFound, jetstream.JSErrCodeConsumerDoesNotExist,
		jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount)
}
