package hedge

import (
	"strings"
	"testing"
)

func TestReasonText(t *testing.T) {
	for r := Off; r <= TooManyInFlight; r++ {
		text, err := r.MarshalText()
		if err != nil || string(text) != r.String() || strings.ContainsAny(r.String(), " (") {
			t.Errorf("%d: MarshalText %q, %v; String %q", r, text, err, r)
		}
		back := Reason(99)
		if err := back.UnmarshalText([]byte(strings.ToUpper(string(text)))); err != nil || back != r {
			t.Errorf("%q read back: %v, %v", text, back, err)
		}
	}
	none := TooManyInFlight + 1
	if none.String() != "reason(6)" {
		t.Errorf("a Reason that is none: %q", none)
	}
	if _, err := none.MarshalText(); err == nil {
		t.Error("a Reason that is none has a text")
	}
	r := Granted
	if err := r.UnmarshalText([]byte("grant")); err == nil || r != Granted || !strings.Contains(err.Error(), "granted") {
		t.Errorf("a text that is none: %v, %v", r, err)
	}
}
