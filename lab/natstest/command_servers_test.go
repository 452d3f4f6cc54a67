//go:build servers

package natstest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lullgo/lull/queue/queuetest"
)

// The program lull, on a real server.
func TestCommand(t *testing.T) {
	t.Parallel()
	queuetest.Command(t, target(t, false), func(text string) queuetest.CommandLine {
		var a address
		must(t, json.Unmarshal([]byte(text), &a))
		c := a.Config.WithDefaults()
		to := strings.NewReplacer("*", "x", ">", "x").Replace(c.Subject)
		return queuetest.CommandLine{Broker: a.URL, Refused: "nats://127.0.0.1:1", Dead: c.DeadLetters, To: to, Mistaken: map[string]string{
			c.Stream: "this is a stream, and no subject; there are " + c.Subject,
		}}
	})
}
