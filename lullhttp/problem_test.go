package lullhttp

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

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
		if got := isProblem(s); got != want {
			t.Errorf("isProblem(%q) = %v", s, got)
		}
	}
}
