package term

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
)

func TestFill(t *testing.T) {
	const text = "a queue of 1,000 in front of the workers; an attempt takes 100 ms on average, and the others wait"
	const want = "\n  time  a queue of 1,000 in front of the workers; an attempt takes 100 ms on\n" +
		"        average, and the others wait\n"
	check.Equal(t, Fill("\n  time  ", text), want, "Fill(\"\\n  time  \", text)")
	check.Equal(t, Fill("  a  ", ""), "  a\n", "nothing")
	check.Equal(t, Fill("", "one"), "one\n", "one word")
}

// A number and its unit are in one line, and so is a name with blanks in it.
func TestNothingIsTornApart(t *testing.T) {
	long := "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 "
	check.Equal(t, Fill("", long+"5 ms"), long[:76]+"\n5 ms\n", "Fill(\"\", long+\"5 ms\")")
	var got Sentences
	got.List("Slow, by more than anybody would like to wait: ", "fixed interval (2.4 s)", "full jitter (3 s)")
	if want := "Slow, by more than anybody would like to wait: fixed interval (2.4 s),\n  full jitter (3 s)."; got.List("Nobody: ") || !slices.Equal(got, Sentences{want}) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRanked(t *testing.T) {
	got := Ranked([]string{"ccc", "dd", "b", "aa", "none"}, func(s string) (float64, string, bool) { return float64(len(s)), s, s != "none" })
	check.Slices(t, got, []string{"b", "dd", "aa", "ccc"}, "one long word")
}

func TestTableIsFolded(t *testing.T) {
	rows := [][]string{{"", "first", "µ"}, {"a name", "1", "22"}, {"b", "", "3"}}
	for most, want := range map[int]string{
		80: "        first   µ\na name      1  22\nb               3\n",
		12: "        first\na name      1\nb\n\n         µ\na name  22\nb        3\n",
	} {
		var out bytes.Buffer
		Table(&out, rows, most)
		check.Equal(t, out.String(), want, "in %d columns", most)
	}
}

func TestPrintable(t *testing.T) {
	check.Equal(t, Printable("say \"é\"\n\x1b[2J"), `say "é"\n\x1b[2J`, "Printable(\"say \\\"é\\\"\\n\\x1b[2J\")")
}

func TestBarsFollowTheLocale(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		ascii bool
	}{
		{nil, false},
		{map[string]string{"LANG": "de_DE.UTF-8"}, false},
		{map[string]string{"LANG": "C.utf8"}, false},
		{map[string]string{"LANG": "C"}, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, true},
		{map[string]string{"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, false},
	} {
		got := BarsFor(func(name string) string { return c.env[name] })
		check.Equal(t, (string(got) == string(ASCII)), c.ascii, "%v", c.env)
	}
}

func TestLine(t *testing.T) {
	check.Equal(t, Blocks.Line([]float64{0, 0.01, 50, 100, 200}, 100), "▁▂▅██", "Blocks.Line([]float64{0, 0.01, 50, 100, 200}, 100)")
	check.Equal(t, Blocks.Line([]float64{0, 0}, 0), "▁▁", "of nothing")
}

func TestProgressWritesOverItselfOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &Progress{out: &out, terminal: true, start: time.Now(), last: time.Now()}
		for range 101 {
			p.Show(func(took time.Duration) string { return took.String() })
			time.Sleep(10 * time.Millisecond)
		}
		p.End()
		text := out.String()
		if n := strings.Count(text, "\r"); n != 11 || strings.Contains(text, "\n") || !strings.HasSuffix(text, "\r"+ClearRest) {
			t.Errorf("%d lines in a second, want 10 and one to clear: %q", n, text)
		}
	})
}

func TestQuietWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, func(string) string { return "" }, true)
		time.Sleep(time.Hour)
		p.Show(func(took time.Duration) string { return took.String() })
		p.End()
		if out.Len() > 0 {
			t.Errorf("said %q", out.String())
		}
	})
}
