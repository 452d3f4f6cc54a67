package lullnats

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// LettersIn is Letters for all dead letters of a stream, whatever their queues. It is for tools
// that know the stream and not the queues.
func LettersIn(ctx context.Context, js jetstream.JetStream, stream string) (queue.DeadLetters, error) {
	if !validName.MatchString(stream) {
		return nil, lull.Permanent(fmt.Errorf("lullnats: the stream %q: want 1 to 100 letters, digits, hyphens and underscores", stream))
	}
	k, err := newClient(js)
	if err != nil {
		return nil, lull.Permanent(err)
	}
	return k.letters(ctx, stream, ">")
}
