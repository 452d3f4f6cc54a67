package choice

import (
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

type fruit uint8

var fruits = []string{"apple", "pear", "kiwi"}

func TestNames(t *testing.T) {
	for v, want := range map[fruit]string{0: "apple", 2: "kiwi", 3: "fruit(3)", 255: "fruit(255)"} {
		check.Equal(t, Name("fruit", fruits, v), want, "%d is called", uint8(v))
	}
}

func TestTextsGoBothWays(t *testing.T) {
	for v := range fruit(len(fruits)) {
		text, err := Marshal("Fruit", fruits, v)
		if err != nil || string(text) != fruits[v] {
			t.Errorf("%d is written %q, %v", v, text, err)
		}
		for _, s := range []string{fruits[v], "APPLEPEARKIWI"[map[fruit]int{0: 0, 1: 5, 2: 9}[v]:][:len(fruits[v])]} {
			got := fruit(9)
			if err := Unmarshal("Fruit", fruits, &got, []byte(s)); err != nil || got != v {
				t.Errorf("%q is read as %d, %v", s, got, err)
			}
		}
	}
	if _, err := Marshal("Fruit", fruits, fruit(3)); err == nil || err.Error() != "Fruit is 3: want apple, pear or kiwi" {
		t.Errorf("%v", err)
	}
	got := fruit(1)
	for _, s := range []string{"", "plum", "\u212aiwi", "apple "} { // a Kelvin sign folds to k
		if err := Unmarshal("Fruit", fruits, &got, []byte(s)); err == nil || got != 1 {
			t.Errorf("%q is read as %d", s, got)
		}
	}
	check.Equal(t, Unmarshal("Fruit", fruits, &got, []byte("plum")).Error(), `Fruit is "plum": want apple, pear or kiwi`, "err.Error()")
}

func TestList(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		check.Equal(t, List(names), want, "%q", names)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3}, {"größe", "grosse", 3}} {
		check.Equal(t, distance(c.a, c.b), c.want, "distance(%q, %q)", c.a, c.b)
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"attempts", "attempt_timeout", "deadline", "backoff", "hint_limit", "limit", "retry_off", "retry_on", "CANCELLED"}
	for wrong, want := range map[string]string{
		"atempts": "attempts", "attemptTimeout": "attempt_timeout", "Attempt-Timeout": "attempt_timeout", "timeout": "attempt_timeout",
		"dealdine": "deadline", "limt": "limit", "zebra": "", "": "", strings.Repeat("attempts", 20): "",
		"xyz": "", "RetryOn": "retry_on", "retry-on": "retry_on", "retry_oon": "retry_on", "canceled": "CANCELLED", "CANCELED": "CANCELLED",
		"att": "attempts", "Back": "backoff", "a": "", "retry": "retry_off", "off": "retry_off", "time": "", "hint limit": "hint_limit",
	} {
		check.Equal(t, Nearest(wrong, keys), want, "nearest to %q", wrong)
	}
	if got := Nearest("a", []string{"x", "a_b", "b_a"}); got != "x" { // one letter of one
		t.Errorf("nearest to a is %q", got)
	}
	check.Equal(t, Nearest("deal", []string{"long_deal", "deal-maker"}), "deal-maker", "nearest to deal")
	if got := Nearest("deal", []string{"long_deal", "big-deal"}); got != "" { // either could be meant
		t.Errorf("nearest to deal is %q", got)
	}
	if got := Nearest("atempts", slices.Repeat(keys, 1001/len(keys)+1)); got != "" { // to look through them for each mistake takes seconds
		t.Errorf("nearest of more than a thousand is %q", got)
	}
}
