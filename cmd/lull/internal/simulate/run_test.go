package simulate

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/lab/sim"
)

func TestProgressIsPlainAndRareWhereThereIsNoTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := term.NewProgress(&out, func(string) string { return "" }, false)
		for second := range 35 {
			p.Show((&tally{done: second / 10, of: make([]sim.Progress, 5), share: float64(second) / 50, events: int64(second) * 2_000_000}).line)
			time.Sleep(time.Second)
		}
		p.End()
		const want = `simulating: 20.0 %, 1 of 5 runs, 2M events/s, 40 s left
simulating: 40.0 %, 2 of 5 runs, 2M events/s, 30 s left
simulating: 60.0 %, 3 of 5 runs, 2M events/s, 20 s left
`
		if out.String() != want {
			t.Errorf("printed\n%swant\n%s", out.String(), want)
		}
	})
}

// What is merged of three parts is byte for byte what one run prints, in every form.
func TestMergedPartsAreOneRun(t *testing.T) {
	for _, c := range []struct{ args, forms []string }{
		{[]string{tiny, "--policy=none,grpc,testdata/policies.yaml", "--seeds=2"}, []string{"", "--json", "--csv"}},
		{[]string{tiny, "--policy=none,lull", "--sweep=clients=1,10", "--sweep=services.api.faults.0.for=1s,2s", "--set=policy.attempts=2"}, []string{"", "--json", "--csv"}},
		{[]string{tiny, "--policy=none,lull", "--map"}, []string{"", "--json"}},
	} {
		folder := t.TempDir()
		for part := range 3 {
			text := simulate(t, append(c.args, fmt.Sprintf("--cells=%d/3", part))...)
			clitest.Write(t, filepath.Join(folder, fmt.Sprint(part, ".part")), text)
		}
		for _, form := range c.forms {
			args := c.args
			if form != "" {
				args = append(args[:len(args):len(args)], form)
			}
			want := simulate(t, args...)
			merged := append(args[:len(args):len(args)], "--merge="+folder+"/*.part")
			if got := simulate(t, merged...); got != want {
				t.Errorf("%v: merged\n%s\nwant\n%s", args, got, want)
			}
			if code, out, errs := lullProgram(t.Context(), append(merged, "--seed=2")...); code != cli.Failed || out != "" || !strings.Contains(errs, "are in none of the files") {
				t.Errorf("%v with another seed: exit code %d, printed %q and %q", args, code, out, errs)
			}
		}
	}
}
