package probe

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTheRate(t *testing.T) {
	start := time.Unix(0, 0)
	m := meter{every: 100 * time.Millisecond, burst: 3}
	for i, want := range []time.Duration{0, 0, 0, 100, 200} {
		if got := m.take(start, 1); got > 0 && got != want*time.Millisecond || got <= 0 && want > 0 {
			t.Errorf("request %d waits %v, want %v", i, got, want*time.Millisecond)
		}
	}
	if got := m.take(start.Add(time.Hour), 3); got > 0 { // what was not used does not add up beyond the burst
		t.Errorf("three at once wait %v", got)
	}
	if got := m.take(start.Add(time.Hour), 2); got != 200*time.Millisecond {
		t.Errorf("two more wait %v, want 200ms", got)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		t    Target
		o    Options
		want string
	}{
		{Target{}, Options{}, `URL is "": want http://HOST/PATH`},
		{Target{URL: "ftp://a/"}, Options{}, `URL is "ftp://a/"`},
		{Target{URL: "http://user:secret@a/"}, Options{}, `URL is `},
		{Target{URL: "http://a/", Post: "//b/c"}, Options{}, `Post is "//b/c": want a path that begins with one /`},
		{Target{URL: "http://a/", Slow: "http://b/"}, Options{}, `Slow is "http://b/"`},
		{Target{URL: "http://a/", Header: http.Header{"X": {"a\r\nb"}}}, Options{}, `Header is "X"`},
		{Target{URL: "http://a/"}, Options{Requests: -1}, "Requests is -1: want 1 to 100000"},
		{Target{URL: "http://a/"}, Options{Rate: math.NaN()}, "Rate is NaN"},
		{Target{URL: "http://a/"}, Options{Together: 1}, "Together is 1: want 2 to 1000"},
	} {
		if _, err := Run(t.Context(), c.t, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.t, err, c.want)
		}
	}
	if _, err := Select([]string{"keys", "kyes"}); err == nil || !strings.Contains(err.Error(), `"kyes"`) {
		t.Errorf("an unknown case: %v", err)
	}
}

func FuzzProblem(f *testing.F) {
	f.Add(`{"type":"about:blank","title":"a","status":503}`)
	f.Add(`{"status":1e99}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, body string) {
		x := exchange{status: 503, body: []byte(body)}
		if why := malformed(&x); why == "" && !strings.HasPrefix(strings.TrimSpace(body), "{") {
			t.Errorf("%q is taken for problem details", body)
		}
		milliseconds(&x)
	})
}
