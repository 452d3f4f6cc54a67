package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const code = `package fee

import "time"

type price time.Duration

// Of has changes of all kinds, all of which the tests notice.
func Of(n int, gold bool) price {
	if n < 4 && gold {
		return 2 * price(time.Second)
	}
	return max(price(n), 1)
}

func Known(n int) bool {
	if n == 0 {
		return true
	}
	names := [...]string{2: "c"}
	return n*1 == len(names)
}

func Nowhere() { print(9) }
`

const tests = `package fee

import "testing"

func TestOf(t *testing.T) {
	for _, c := range []struct {
		n    int
		gold bool
		want price
	}{{2, true, 2e9}, {3, true, 2e9}, {4, true, 4}, {-5, false, 1}, {-3, true, 2e9}} {
		if got := Of(c.n, c.gold); got != c.want {
			t.Error(got)
		}
	}
}

func TestKnown(t *testing.T) {
	if !Known(0) || Known(1) {
		t.Error()
	}
}

func TestBroken(t *testing.T) { t.Error("by itself") }
`

func TestSurvivors(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module example.com/fee\n\ngo 1.26.0\n", "fee.go": code, "fee_test.go": tests,
		"equivalent.txt": "# A list.\n\nfee.go Known: `if n == 0 {`: `n == 0` becomes `n != 0` -- not really\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	c := config{n: 1000, seed: 1, known: "equivalent.txt", packages: []string{"."}, longest: time.Minute, slack: time.Second, verbose: true, log: &log}
	survivors, err := run(c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range survivors {
		got = append(got, m.String())
	}
	slices.Sort(got)
	want := []string{
		"fee.go:19 Known: `names := [...]string{2: \"c\"}`: `2` becomes `3`",
		"fee.go:20 Known: `return n*1 == len(names)`: `1` becomes `2`",
		"fee.go:20 Known: `return n*1 == len(names)`: `n*1` becomes `n / 1`",
		"fee.go:23 Nowhere: `func Nowhere() { print(9) }`: `9` becomes `10`",
		"fee.go:23 Nowhere: `func Nowhere() { print(9) }`: `print(9)` dropped",
	}
	if !slices.Equal(got, want) {
		t.Errorf("survivors:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, text := range []string{"TestBroken fails without a change", " 1 make no difference"} {
		if !strings.Contains(log.String(), text) {
			t.Errorf("no %q in\n%s", text, &log)
		}
	}
}
