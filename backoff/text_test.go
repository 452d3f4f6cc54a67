package backoff

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTextIsTheName(t *testing.T) {
	for k := Exponential; k <= Ethernet; k++ {
		text, err := k.MarshalText()
		if err != nil || string(text) != k.String() {
			t.Errorf("%v: %q, %v", k, text, err)
		}
		for _, spelt := range []string{k.String(), strings.ToUpper(k.String())} {
			got := Kind(99)
			if err := got.UnmarshalText([]byte(spelt)); err != nil || got != k {
				t.Errorf("%q is %v, %v; want %v", spelt, got, err, k)
			}
		}
	}
	for j := Full; j <= Proportional; j++ {
		text, err := j.MarshalText()
		if err != nil || string(text) != j.String() {
			t.Errorf("%v: %q, %v", j, text, err)
		}
		for _, spelt := range []string{j.String(), strings.ToUpper(j.String())} {
			got := Jitter(99)
			if err := got.UnmarshalText([]byte(spelt)); err != nil || got != j {
				t.Errorf("%q is %v, %v; want %v", spelt, got, err, j)
			}
		}
	}
}

func TestTextThatIsNoName(t *testing.T) {
	for _, text := range []string{"", "expo", "exponential ", "kind(0)", "0", "con\u017ftant"} {
		k := Linear
		err := k.UnmarshalText([]byte(text))
		want := `Kind is "` + text + `": want exponential, linear, constant, immediate or ethernet`
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if k != Linear {
			t.Errorf("%q: kind changed to %v", text, k)
		}
	}
	for _, text := range []string{"", "fill", " full", "jitter(0)"} {
		j := Equal
		err := j.UnmarshalText([]byte(text))
		want := `Jitter is "` + text + `": want full, equal, none, decorrelated or proportional`
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if j != Equal {
			t.Errorf("%q: jitter changed to %v", text, j)
		}
	}
	if _, err := Kind(5).MarshalText(); err == nil {
		t.Error("kind(5) has a text")
	}
	if _, err := Jitter(5).MarshalText(); err == nil {
		t.Error("jitter(5) has a text")
	}
}

// A schedule survives JSON, and reads there as it would in a file.
func TestScheduleInJSON(t *testing.T) {
	want := Schedule{Kind: Linear, Jitter: Equal, Base: 5}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(data); !strings.Contains(s, `"Kind":"linear"`) || !strings.Contains(s, `"Jitter":"equal"`) {
		t.Errorf("names are missing: %s", s)
	}
	var got Schedule
	if err := json.Unmarshal(data, &got); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// Whatever is taken is a name, and comes back as that name.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "full", "Linear", "ethernet", "ſ", "immediate\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var k Kind
		if err := k.UnmarshalText([]byte(s)); err == nil && !strings.EqualFold(k.String(), s) {
			t.Errorf("%q became %v", s, k)
		}
		var j Jitter
		if err := j.UnmarshalText([]byte(s)); err == nil && !strings.EqualFold(j.String(), s) {
			t.Errorf("%q became %v", s, j)
		}
	})
}
