package simulate

import (
	"bytes"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/term"
)

func TestProgressIsPlainAndRareWhereThereIsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := term.NewProgress(&out, func(string) string { return "" }, false, func() time.Time { return now })
	for second := range 35 {
		now = time.Unix(int64(second), 0)
		p.Show(totalProgress{done: second / 10, runs: 5, share: float64(second) / 50, events: int64(second) * 2_000_000}.line)
	}
	p.End()
	const want = `simulating: 20.0 %, 1 of 5 runs, 2M events/s, 40 s left
simulating: 40.0 %, 2 of 5 runs, 2M events/s, 30 s left
simulating: 60.0 %, 3 of 5 runs, 2M events/s, 20 s left
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}
