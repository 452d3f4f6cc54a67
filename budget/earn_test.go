package budget

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEarnTextIsTheName(t *testing.T) {
	for e := Successes; e <= Arrivals; e++ {
		text, err := e.MarshalText()
		if err != nil || string(text) != e.String() {
			t.Errorf("%v: %q, %v", e, text, err)
		}
		for _, spelt := range []string{e.String(), strings.ToUpper(e.String())} {
			got := Earn(99)
			if err := got.UnmarshalText([]byte(spelt)); err != nil || got != e {
				t.Errorf("%q is %v, %v; want %v", spelt, got, err, e)
			}
		}
	}
	if text, err := Earn(2).MarshalText(); err == nil {
		t.Errorf("earn(2) has the text %q", text)
	}
}

func TestEarnTextThatIsNoName(t *testing.T) {
	for _, text := range []string{"", "success", "arrivals ", "earn(0)", "0", "arrival\u017f"} {
		e := Arrivals
		err := e.UnmarshalText([]byte(text))
		want := `Earn is "` + text + `": want successes or arrivals`
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if e != Arrivals {
			t.Errorf("%q: changed to %v", text, e)
		}
	}
}

// A Config survives JSON, and reads there as it would in a file.
func TestConfigInJSON(t *testing.T) {
	want := Config{Ratio: 0.2, Earn: Arrivals, Stock: 5}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(data); !strings.Contains(s, `"Earn":"arrivals"`) {
		t.Errorf("the name is missing: %s", s)
	}
	var got Config
	if err := json.Unmarshal(data, &got); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// Whatever is taken is a name, and comes back as that name.
func FuzzEarnText(f *testing.F) {
	for _, s := range []string{"", "arrivals", "Successes", "ſuccesses", "arrivals\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var e Earn
		if err := e.UnmarshalText([]byte(s)); err == nil && !strings.EqualFold(e.String(), s) {
			t.Errorf("%q became %v", s, e)
		}
	})
}
