package lullhttp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
)

func TestClassifyStatus(t *testing.T) {
	kinds := map[engine.VerdictKind][]int{
		lull.KindSuccess:     {101, 200, 201, 204, 206, 299, 301, 302, 304, 308, 399},
		lull.KindTransient:   {408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 527, 530, 599},
		lull.KindRateLimited: {429, 529},
		lull.KindPermanent: {400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422,
			423, 424, 426, 428, 431, 451, 499, 501, 505, 506, 507, 508, 510, 511, 525, 526,
			math.MinInt, -1, 0, 1, 99, 100, 102, 103, 199, 600, 999, math.MaxInt},
	}
	for kind, statuses := range kinds {
		for _, s := range statuses {
			want := lull.Verdict{Kind: kind, Code: strconv.Itoa(s)}
			if kind == lull.KindSuccess {
				want.Code = ""
			}
			check.Equal(t, ClassifyStatus(s), want, "ClassifyStatus(%d)", s)
		}
	}
	// RFC 9110, 15: a number that is not known counts as the first of its class.
	for s := range 1000 {
		switch got := ClassifyStatus(s); {
		case got.NeverSent || got.After != 0:
			t.Errorf("ClassifyStatus(%d) = %+v claims too much", s, got)
		case got.Kind != lull.KindSuccess && got.Code != strconv.Itoa(s):
			t.Errorf("ClassifyStatus(%d) has code %q", s, got.Code)
		}
	}
}

func TestClassifyStatusAllocates(t *testing.T) {
	for s := 400; s < 600; s++ {
		check.Equal(t, testing.AllocsPerRun(10, func() { ClassifyStatus(s) }), 0, "ClassifyStatus(%d): allocations", s)
	}
}

func TestClassifyResponse(t *testing.T) {
	w := wait(5*time.Second, "Retry-After")
	zero := wait(0, "Retry-After")
	stop := Hint{Stop: true, Source: "X-Should-Retry"}
	yes := Hint{Retry: true, Source: "X-Should-Retry"}
	yesWait := Hint{Retry: true, After: time.Second, Source: "Retry-After"}
	const s = 5 * time.Second
	for _, c := range []struct {
		name   string
		status int
		hint   Hint
		kind   engine.VerdictKind
		after  time.Duration
	}{
		{"503", 503, noHint, lull.KindTransient, 0},
		{"503 that names a wait is a rate limit", 503, w, lull.KindRateLimited, s},
		{"503, come now", 503, zero, lull.KindTransient, 0},
		{"500 that names a wait", 500, w, lull.KindTransient, s},
		{"429", 429, noHint, lull.KindRateLimited, 0},
		{"429 that names a wait", 429, w, lull.KindRateLimited, s},
		{"403 that names a wait is a rate limit", 403, w, lull.KindRateLimited, s},
		{"403", 403, noHint, lull.KindPermanent, 0},
		{"403, wait of zero", 403, zero, lull.KindPermanent, 0},
		{"404 that names a wait", 404, w, lull.KindPermanent, 0},
		{"409 that names a wait passes", 409, w, lull.KindRateLimited, s},
		{"413 that names a wait passes", 413, w, lull.KindRateLimited, s},
		{"423 that names a wait passes", 423, w, lull.KindRateLimited, s},
		{"409", 409, noHint, lull.KindPermanent, 0},
		{"413, wait of zero", 413, zero, lull.KindPermanent, 0},
		{"423, don't", 423, stop, lull.KindPermanent, 0},
		{"410 that names a wait", 410, w, lull.KindPermanent, 0},
		{"400 that names a wait", 400, w, lull.KindPermanent, 0},
		{"503, don't", 503, stop, lull.KindOverloaded, 0},
		{"429, don't", 429, stop, lull.KindOverloaded, 0},
		{"402, don't: the dependency is well", 402, stop, lull.KindPermanent, 0},
		{"409, do", 409, yes, lull.KindTransient, 0},
		{"409, do, in a second", 409, yesWait, lull.KindTransient, time.Second},
		{"429, do", 429, yes, lull.KindRateLimited, 0},
		{"501, do", 501, yes, lull.KindTransient, 0},
		{"103, do", 103, yes, lull.KindPermanent, 0},
		{"200, don't", 200, stop, lull.KindSuccess, 0},
		{"200 that names a wait", 200, w, lull.KindSuccess, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := lull.Verdict{Kind: c.kind, After: c.after, Code: strconv.Itoa(c.status)}
			if c.kind == lull.KindSuccess {
				want.Code = ""
			}
			check.Equal(t, classifyResponse(c.status, c.hint, c.hint.Source != ""), want, "%d, %+v", c.status, c.hint)
		})
	}
}

// What the user settled, a hint cannot make retryable.
func TestHintedKeepsTheUsersKind(t *testing.T) {
	w := wait(time.Second, "Retry-After")
	stop := Hint{Stop: true, Source: "X-Should-Retry"}
	yes := Hint{Retry: true, Source: "X-Should-Retry"}
	for _, k := range []engine.VerdictKind{lull.KindSuccess, lull.KindOverloaded, lull.KindPermanent} {
		for _, h := range []Hint{w, stop, yes, noHint} {
			if got, want := withHint(k, 503, h), (lull.Verdict{Kind: k, Code: "503"}); got != want {
				t.Errorf("hinted(%v, %+v) = %+v", k, h, got)
			}
		}
	}
	if got, want := withHint(lull.KindTransient, 404, w), (lull.Verdict{Kind: lull.KindTransient, After: time.Second, Code: "404"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := withHint(lull.KindTransient, 404, stop), (lull.Verdict{Kind: lull.KindOverloaded, Code: "404"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseProblem(t *testing.T) {
	// The example of RFC 9457, 3.
	got, ok := ParseProblem([]byte(`{
		"type": "https://example.com/probs/out-of-credit",
		"title": "You do not have enough credit.",
		"status": 403,
		"detail": "Your current balance is 30, but that costs 50.",
		"instance": "/account/12345/msgs/abc",
		"balance": 30,
		"accounts": ["/account/12345", "/account/67890"]
	}`))
	want := ProblemDetails{
		Type:     "https://example.com/probs/out-of-credit",
		Title:    "You do not have enough credit.",
		Status:   403,
		Detail:   "Your current balance is 30, but that costs 50.",
		Instance: "/account/12345/msgs/abc",
	}
	if !ok || got != want {
		t.Errorf("got %+v, %v, want %+v", got, ok, want)
	}
	for _, status := range []int{100, 599} { // the first of HTTP's, and the last
		if got, ok := ParseProblem(fmt.Appendf(nil, `{"status":%d}`, status)); !ok || got.Status != status {
			t.Errorf("status %d is read as %d, %v", status, got.Status, ok)
		}
	}
	for _, body := range []string{``, `null`, `[]`, `"x"`, `3`, `{`, `{"type":"a"`, `{"type":"a"} x`, `<problem/>`, strings.Repeat("[", 100000)} {
		if got, ok := ParseProblem([]byte(body)); ok || got != (ProblemDetails{}) {
			t.Errorf("ParseProblem(%.30q) = %+v, want it refused", body, got)
		}
	}
}

// "If a member's value type does not match the specified type, the member MUST
// be ignored" (RFC 9457, 3.1), and so must unknown ones.
func TestProblemIgnoresWhatDoesNotConform(t *testing.T) {
	for _, body := range []string{
		`{}`,
		`{"type":1,"title":{},"status":"503","detail":null,"instance":[],"retry_after":"soon"}`,
		`{"status":99}`, `{"status":600}`, `{"status":503.5}`, `{"status":-503}`, `{"status":1e400}`, `{"status":true}`,
		`{"retry_after":-1}`, `{"retry_after":"5"}`, `{"retry_after":null}`, `{"retry_after":[5]}`, `{"retry_after":true}`, `{"retry_after":-1e3}`,
		`{"Retry_After":5,"RETRYAFTER":5,"Type":"x","STATUS":503}`, // names are compared exactly
	} {
		want := ProblemDetails{Type: "about:blank"}
		if got, ok := ParseProblem([]byte(body)); !ok || got != want {
			t.Errorf("ParseProblem(%s) = %+v, %v, want %+v", body, got, ok, want)
		}
	}
}

func TestProblemHint(t *testing.T) {
	for body, want := range map[string]Hint{
		`{"retry_after":30}`:                       wait(30*time.Second, "problem retry_after"),
		`{"retryAfter":0}`:                         wait(0, "problem retryAfter"),
		`{"retry-after":1.5}`:                      wait(1500*time.Millisecond, "problem retry-after"),
		`{"retry_after_ms":250}`:                   wait(250*time.Millisecond, "problem retry_after_ms"),
		`{"retryAfterMs":250}`:                     wait(250*time.Millisecond, "problem retryAfterMs"),
		`{"retry_after_ms":250,"retry_after":1}`:   wait(time.Second, "problem retry_after"),
		`{"retry_after":"x","retry_after_ms":250}`: wait(250*time.Millisecond, "problem retry_after_ms"),
		`{"retry_after":3e1}`:                      wait(30*time.Second, "problem retry_after"),
		`{"retry_after":25E-1}`:                    wait(2500*time.Millisecond, "problem retry_after"),
		`{"retry_after":1e-400}`:                   wait(0, "problem retry_after"),
		`{"retry_after":1e-300}`:                   wait(1, "problem retry_after"),
		`{"retry_after":1e400}`:                    wait(math.MaxInt64, "problem retry_after"),
		`{"retry_after":99999999999999999999}`:     wait(math.MaxInt64, "problem retry_after"),
	} {
		if got, ok := ParseProblem([]byte(body)); !ok || got.Hint != want {
			t.Errorf("ParseProblem(%s) = %+v, %v, want %+v", body, got.Hint, ok, want)
		}
	}
	body := fmt.Sprintf(`{"type":%q,"retry_after":5}`, ProblemOverloaded)
	if got, _ := ParseProblem([]byte(body)); got.Hint != (Hint{Stop: true, Source: "problem type"}) {
		t.Errorf("our own type gives %+v, want Stop", got.Hint)
	}
}

func TestIsProblem(t *testing.T) {
	for s, want := range map[string]bool{
		"application/problem+json": true, "application/problem+json; charset=utf-8": true, "Application/Problem+JSON ;x=y": true,
		"": false, "application/json": false, "application/problem+xml": false, "application/problem+jsonx": false, "text/plain; application/problem+json": false,
	} {
		check.Equal(t, isProblem(s), want, "isProblem(%q)", s)
	}
}
