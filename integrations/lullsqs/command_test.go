package lullsqs

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/lullgo/lull/queue/queuetest"
)

// The program lull, on the emulator.
func TestCommand(t *testing.T) {
	t.Parallel()
	e := emulators.need(t, "command")
	x := queuetest.Target{Declare: e.declare, Connect: connect, Lease: lease()}
	queuetest.Command(t, x, func(text string) queuetest.CommandLine {
		var a address
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		at := func(endpoint string) string {
			return "sqs://eu-central-1?" + url.Values{"endpoint": {endpoint}}.Encode()
		}
		return queuetest.CommandLine{
			Broker: at(a.Endpoint), Refused: at("http://127.0.0.1:1"), Dead: a.Config.DeadLetters, To: a.Config.Queue,
			Held: 31 * time.Second,
			Env:  []string{"AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_EC2_METADATA_DISABLED=true"},
		}
	})
}
