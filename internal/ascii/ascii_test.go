package ascii

import (
	"encoding/json"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		"":                        `""`,
		"plain \" \\ text":        `"plain \" \\ text"`,
		"é € \U0001f600 \x7f":     `"\u00e9 \u20ac \ud83d\ude00 \u007f"`,
		"\U0010ffff\uffff\ufffd~": `"\udbff\udfff\uffff\ufffd~"`,
	} {
		raw := must.Have(json.Marshal(in))
		got := JSON(string(raw))
		check.Equal(t, got, want, "%q", in)
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != in {
			t.Errorf("%s is read as %q, want %q (%v)", got, back, in, err)
		}
	}
}
