package battery

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	return clitest.Run[Command](cli.Env{Context: t.Context()}, "battery", args...)
}

// hang is a small world in which the default policies differ.
var hang = []string{"--quick", "--quiet", "--rivals", "full-jitter", "--world", "bh60-at10s-p1-r5-cancel"}

func TestText(t *testing.T) {
	code, stdout, stderr := run(t, append(hang, "--all")...)
	if code != cli.OK || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"lull in 1 world, 1 seed\n", "Demands that are not met: ", "bh60-at10s-p1-r5-cancel", "full-jitter"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing:\n%s", want, stdout)
		}
	}
}

func TestList(t *testing.T) {
	code, stdout, _ := run(t, "--list", "--family", "hangs,grid")
	if code != cli.OK || !strings.HasPrefix(stdout, "hangs: ") || !strings.Contains(stdout, "\n  bh300-at10s-p100-cancel\n") ||
		!strings.Contains(stdout, "\ngrid: ") || strings.Contains(stdout, "layers") {
		t.Errorf("exit code %d, printed\n%s", code, stdout)
	}
}

// Worlds that are drawn have the names of their seed, and one of them can be flown alone.
func TestFresh(t *testing.T) {
	_, list, _ := run(t, "--list", "--quick", "--fresh", "30", "--seed", "7")
	name := list[strings.Index(list, "lost-7."):]
	name = name[:strings.IndexByte(name, '\n')]
	code, out, errs := run(t, "--quick", "--quiet", "--json", "--fresh", "30", "--seed", "7", "--world", name, "--rivals", "none")
	var all account
	must.Succeed(json.Unmarshal([]byte(out), &all))
	if code != cli.OK || all.Drawn == nil || *all.Drawn != 7 || len(all.Worlds) != 1 || all.Worlds[0].Name != name {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if _, other, _ := run(t, "--list", "--quick", "--fresh", "30"); other == list {
		t.Error("without --seed the same worlds are drawn")
	}
}

// What --json prints is read by --against, and only the policy is flown again.
func TestAgainst(t *testing.T) {
	code, first, stderr := run(t, append(hang, "--json")...)
	if code != cli.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	path := clitest.Write(t, filepath.Join(t.TempDir(), "first.json"), first)
	if _, second, _ := run(t, append(hang, "--json", "--against", path)...); second != first {
		t.Errorf("with --against:\n%s\nwithout:\n%s", second, first)
	}
	var all account
	must.Succeed(json.Unmarshal([]byte(first), &all))
	none := &all.Worlds[0].Contenders[1]
	if none.Name != "none" {
		t.Fatalf("the second contender is %s", none.Name)
	}
	none.Runs[0].Succeeded = 1 // a figure that no flight has
	changed := must.Have(json.Marshal(all))
	clitest.Write(t, path, string(changed))
	if _, second, _ := run(t, append(hang, "--json", "--against", path)...); !strings.Contains(second, `"succeeded": 1,`) {
		t.Errorf("the flight of a rival is not taken from the file:\n%s", second)
	}
	for i := range all.Worlds[0].Contenders { // a file from before what is held was counted
		for k := range all.Worlds[0].Contenders[i].Runs {
			all.Worlds[0].Contenders[i].Runs[k].Held = nil
		}
	}
	clitest.Write(t, path, string(must.Have(json.Marshal(all))))
	if _, second, _ := run(t, append(hang, "--json", "--against", path)...); second != first {
		t.Errorf("with an old file:\n%s\nwithout:\n%s", second, first)
	}
}

// What is merged of two parts is byte for byte what one run prints.
func TestMergedPartsAreOneRun(t *testing.T) {
	args := []string{"--quick", "--quiet", "--rivals", "full-jitter,grpc", "--policy", "token-bucket", "--world", "bh60-at10s-p1-r5-cancel,flap-errors2of10-p1,sick1of3-p100-at500ms"}
	folder := t.TempDir()
	for part := range 2 {
		code, out, errs := run(t, append(args, "--cells", fmt.Sprintf("%d/2", part))...)
		if code != cli.OK || errs != "" {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		clitest.Write(t, filepath.Join(folder, fmt.Sprint(part)), out)
	}
	for _, form := range []string{"--json", "--all"} {
		_, want, _ := run(t, append(args, form)...)
		if code, got, errs := run(t, append(args, form, "--merge", folder+"/0,"+folder+"/1")...); code != cli.OK || got != want {
			t.Errorf("%s: exit code %d, %s, merged\n%s\nwant\n%s", form, code, errs, got, want)
		}
	}
}

func TestPolicyFile(t *testing.T) {
	path := clitest.Write(t, filepath.Join(t.TempDir(), "mine.yaml"), "dependencies:\n  mine: {attempts: 1}\n")
	code, stdout, stderr := run(t, append(hang, "--policy", path, "--all")...)
	if code != cli.OK || !strings.HasPrefix(stdout, "mine in 1 world") {
		t.Errorf("exit code %d, printed\n%s%s", code, stdout, stderr)
	}
	clitest.Write(t, path, "dependencies:\n  mine: {attemps: 1}\n")
	code, _, stderr = run(t, append(hang, "--policy", path)...)
	if code != cli.Misused || !strings.Contains(stderr, "mine.yaml:2:") || !strings.Contains(stderr, "attemps") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestMistakes(t *testing.T) {
	bad := clitest.Write(t, filepath.Join(t.TempDir(), "bad.json"), `{"worlds": 1}`)
	for _, c := range []struct{ args, want string }{
		{"--family hang", `--family is "hang": want timeouts, `},
		{"--world nowhere", `--world is "nowhere": want `},
		{"--seeds 0", `--seeds is "0": want a whole number from 1 to 100`},
		{"--fresh 0 --seed 1", `--fresh is "0": want a whole number from 1 to 10000`},
		{"--seed 1", `--seed is without --fresh`},
		{"--fresh 9 --cells 0/2", `--seed is missing`},
		{"--workers -1", `--workers is "-1"`},
		{"--cells 4/4", `--cells is "4/4": want I/N with I from 0 to N - 1, such as 0/4`},
		{"--merge nix.part", `--merge: nix.part cannot be read`},
		{"--rivals nobody", `--rivals: no preset is called "nobody"`},
		{"--policy nobody", `--policy: no preset is called "nobody"`},
		{"--policy nix.yaml", `nix.yaml`},
		{"--against nix.json", `--against: nix.json cannot be read: `},
		{"--against " + bad, `--against: ` + bad + ` is not what lull battery --json printed`},
	} {
		code, stdout, stderr := run(t, strings.Fields(c.args)...)
		if code != cli.Misused || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
	_, _, stderr := run(t, "--family", "hang", "--seeds", "0", "--policy", "nobody")
	check.Equal(t, strings.Count(stderr, "\n"), 3, "lines for three mistakes: %s", stderr)
}
