package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/torture"
)

func TestResults(t *testing.T) {
	var b strings.Builder
	write(&b, []*torture.Card{
		{Name: "b", Version: "2", Results: []torture.Result{{Case: "once-507", Verdict: torture.Fail.Because("2 attempts")}, {Case: "status-503", Verdict: torture.Pass.Because("")}}},
		{Name: "c", Version: "3", Results: []torture.Result{{Case: "once-507", Verdict: torture.Fail.Because("2 attempts")}}},
		{Name: "a", Version: "1", Results: []torture.Result{{Case: "once-507", Verdict: torture.Fail.Because("%d attempts", 3)}}},
	})
	for _, want := range []string{"|---|\n| a | 1 | 0 | 0 | 1 | 0 |\n| b | 2 | 1 | 0 | 1 | 0 |\n| c | 3 | 0 | 0 | 1 | 0 |\n", "\n**once-507**. The server answers a GET with 507", "Failed by a (3 attempts); b, c (2 attempts).\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "**"); n != 2 {
		t.Errorf("%s", fmt.Sprint(n, " asterisks"))
	}
}

// The page says of a case what its rules say, and counts the cases.
func TestThePageHasTheRulesOfTheCases(t *testing.T) {
	text := must.Have(os.ReadFile("../../../../lab/torture/RESULTS.md"))
	page := string(text)
	n := 0
	for _, c := range torture.Cases() {
		if !strings.Contains(page, "\n**"+c.Name+"**. ") {
			continue
		}
		n++
		if !strings.Contains(page, "\n"+heading(c)+"\nFailed by ") {
			t.Errorf("the page does not say of %s: %s", c.Name, heading(c))
		}
	}
	if headings := strings.Count(page, "\n**"); n == 0 || n != headings {
		t.Errorf("%d of %d headings are those of cases", n, headings)
	}
	if want := fmt.Sprintf("%d cases", len(torture.Cases())); !strings.Contains(strings.ReplaceAll(page, "\n", " "), want) {
		t.Errorf("the page does not say that there are %s", want)
	}
}
