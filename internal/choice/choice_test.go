package choice

import "testing"

type fruit uint8

var fruits = []string{"apple", "pear", "kiwi"}

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
	if err := Unmarshal("Fruit", fruits, &got, []byte("plum")); err.Error() != `Fruit is "plum": want apple, pear or kiwi` {
		t.Errorf("%v", err)
	}
}

func TestList(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := List(names); got != want {
			t.Errorf("%q: %q", names, got)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3}, {"größe", "grosse", 3}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
