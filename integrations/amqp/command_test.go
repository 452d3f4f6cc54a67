package lullamqp

import (
	"encoding/json"
	"testing"

	"github.com/lullgo/lull/queue/queuetest"
)

// The program lull, on a real server.
func TestCommand(t *testing.T) {
	t.Parallel()
	queuetest.Command(t, target(t), func(address string) queuetest.CommandLine {
		var w where
		if err := json.Unmarshal([]byte(address), &w); err != nil {
			t.Fatal(err)
		}
		c := w.Config.WithDefaults()
		return queuetest.CommandLine{Broker: w.URL, Refused: "amqp://127.0.0.1:1/", Dead: c.DeadLetters, To: c.Queue}
	})
}
