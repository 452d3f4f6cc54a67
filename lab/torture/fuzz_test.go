package torture

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{"1\tok\t200", "2\tfailed\t0\tno route", "ready", "-1\tok", "\t\t", "1\tok\tx\ty\tz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		id, o, ok := parseAnswer(line)
		if ok && (id < 0 || o.OK != strings.Contains(line, "\tok")) && !strings.Contains(line, "failed") {
			t.Errorf("%q is call %d, %+v", line, id, o)
		}
	})
}

func FuzzReadJSON(f *testing.F) {
	f.Add([]byte(`{"cards": [{"client": "a", "results": [{"case": "status-503", "group": "statuses", "verdict": {"grade": "pass", "why": "because"}, "events": [{"at": 1, "call": 0, "text": "x"}]}]}]}`))
	f.Add([]byte(`{"cards": [null]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		cards, err := ReadJSON(bytes.NewReader(b))
		if err != nil {
			return
		}
		var page, again bytes.Buffer
		must.Succeed(WritePage(&page, cards))
		if err := WriteJSON(&again, cards); err != nil {
			return // a date that JSON cannot hold
		}
		if _, err := ReadJSON(&again); err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
	})
}

func FuzzAddress(f *testing.F) {
	f.Add("/t/status-503/r1/7", "{imf+3}")
	f.Add("/t///-1/99999999999999999999", "a{epoch-3}b")
	f.Fuzz(func(t *testing.T, path, value string) {
		if call, depth := callAndLayer(path); call < 0 || depth < 0 {
			t.Errorf("%q is call %d at depth %d", path, call, depth)
		}
		withDates(value, time.Unix(1_000_000_000, 0))
	})
}
