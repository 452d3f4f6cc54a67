package probe

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/lab/torture"
)

// answered is an exchange with a status, headers and a body.
func answered(what string, status int, body string, header ...string) exchange {
	x := exchange{what: what, method: "GET", status: status, body: []byte(body), whole: true, reused: true, header: http.Header{}}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		x.header.Add(name, value)
	}
	return x
}

// many is n times the same answer.
func many(n int, status int, header ...string) []exchange {
	list := make([]exchange, n)
	for i := range list {
		list[i] = answered("", status, "", header...)
	}
	return list
}

// table is what a server answers to the POSTs of the draft's table.
func table(first, fresh, again, other, without exchange) []exchange {
	first.what, fresh.what, again.what, other.what, without.what = "the first", "another key", "the same again", "the same key, another body", "without a key"
	third := again
	third.what = "the same, a third time"
	return []exchange{first, fresh, again, other, third, without}
}

func of(survey string, list ...exchange) *seen {
	return &seen{by: map[string][]exchange{survey: list}}
}

func TestClaims(t *testing.T) {
	a, b, c := answered("", 201, "a"), answered("", 201, "b"), answered("", 201, "c")
	replay := answered("", 201, "a", "Idempotent-Replayed: true")
	for _, x := range []struct {
		name string
		list []exchange
		want bool
	}{
		{"replays", table(a, b, a, c, c), true},
		{"a mark", table(a, a, replay, a, a), true},
		{"only 422", table(a, a, a, answered("", 422, ""), a), true},
		{"only 400", table(a, a, a, a, answered("", 400, "")), true},
		{"refuses a second time", table(a, b, answered("", 409, ""), b, c), true},
		{"all new", table(a, b, c, b, a), false},
		{"all the same", table(a, a, a, a, a), false},
	} {
		if why, got := claimsKeys(of("keys", x.list...)); got != x.want || got == (why != "") {
			t.Errorf("%s: %v, %q", x.name, got, why)
		}
	}
}

func TestJudges(t *testing.T) {
	a, b, c := answered("", 201, "a"), answered("", 201, "b"), answered("", 201, "c")
	keys := func(again, other, without exchange) *seen { return of("keys", table(a, b, again, other, without)...) }
	refused := func(header ...string) *seen { return of("busy", many(25, 503, header...)...) }
	problem := func(body string) *seen {
		return of("busy", answered("", 503, body, "Content-Type: application/problem+json; charset=utf-8"))
	}
	key := func(key string, list ...exchange) []exchange {
		for i := range list {
			list[i].key = key
		}
		return list
	}
	retries := func(first, refusedFirst, retry, refusedRetry int) []exchange {
		var list []exchange
		add := func(n, refused, attempt int) {
			for i := range n {
				x := answered("", 200, "")
				if i < refused {
					x = answered("", 503, "")
				}
				x.attempt = attempt
				list = append(list, x)
			}
		}
		add(first, refusedFirst, 0)
		add(retry, refusedRetry, 2)
		return list
	}
	announced := answered("", 200, "", "Lull: 1")
	past := time.Now().Add(-time.Hour).UTC() //clock: a date an hour ago, whatever the load
	later := time.Now().Add(time.Hour).UTC() //clock: a date in an hour, whatever the load
	slow := func(afterwards exchange, bounded bool) *seen {
		peace, left := answered("at peace", 200, ""), exchange{what: "fill", cancelled: true, err: "left"}
		peace.took = 2 * time.Second
		afterwards.what = "afterwards"
		list := []exchange{peace, left, afterwards}
		if bounded {
			list = append(list, answered("fill", 503, ""))
		}
		return of("left", list...)
	}
	timed := func(status int, took time.Duration) exchange {
		x := answered("", status, "")
		x.took = took
		return x
	}
	for _, x := range []struct {
		name  string
		judge func(*seen) torture.Verdict
		seen  *seen
		want  torture.Grade
		why   string
	}{
		{"the same", keyAgain, keys(a, c, c), torture.Pass, "three times"},
		{"another", keyAgain, keys(c, c, c), torture.Fail, "carried out twice"},
		{"refused", keyAgain, keys(answered("", 409, ""), c, c), torture.Warn, "409"},
		{"marked, but another", keyAgain, keys(answered("", 201, "x", "Idempotency-Replayed: true"), c, c), torture.Warn, "replay"},
		{"422", keyBody, keys(a, answered("", 422, ""), c), torture.Pass, "422"},
		{"400", keyBody, keys(a, answered("", 400, ""), c), torture.Warn, "400"},
		{"replayed for another body", keyBody, keys(a, a, c), torture.Warn, "first body"},
		{"carried out", keyBody, keys(a, c, c), torture.Fail, "carried out"},
		{"500", keyBody, keys(a, answered("", 500, ""), c), torture.Warn, "500"},
		{"no other body", keyBody, of("keys", answered("the first", 201, "a"), answered("another key", 201, "b")), torture.NotApplicable, "no second body"},
		{"required", keyMissing, keys(a, c, answered("", 400, "")), torture.Pass, "400"},
		{"optional", keyMissing, keys(a, c, c), torture.NotApplicable, "does not require"},
		{"otherwise", keyMissing, keys(a, c, answered("", 422, "")), torture.Warn, "422"},
		{"one and conflicts", keyAtOnce, of("at-once", append(key("1", answered("", 409, ""), a, answered("", 409, "")), key("2", b, b)...)...), torture.Pass, "409 (2)"},
		{"two at once", keyAtOnce, of("at-once", append(key("1", a, a), key("2", a, b)...)...), torture.Fail, "twice"},
		{"none at all", keyAtOnce, of("at-once", key("1", answered("", 409, ""), answered("", 409, ""))...), torture.Warn, "no success"},
		{"errors at once", keyAtOnce, of("at-once", key("1", a, answered("", 500, ""))...), torture.Warn, "1 × 500"},
		{"the same error", keyError, of("error", answered("", 500, "x"), answered("", 500, "x")), torture.Pass, "500 again"},
		{"unknown", keyError, of("error", answered("", 500, "x"), answered("", 409, "")), torture.Pass, "not known"},
		{"another error", keyError, of("error", answered("", 500, "x"), answered("", 500, "y")), torture.Warn, "again after an error"},
		{"success after an error", keyError, of("error", answered("", 503, "x"), a), torture.Warn, "no effect"},

		{"503 alone", refusalStatus, of("busy", append(many(3, 200), many(2, 503)...)...), torture.Pass, "2 × 503"},
		{"500 too", refusalStatus, of("busy", append(many(3, 500), many(2, 429)...)...), torture.Warn, "3 × 500"},
		{"seconds", refusalHint, refused("Retry-After: 3"), torture.Pass, ""},
		{"a date", refusalHint, refused("Retry-After: " + later.Format(http.TimeFormat)), torture.Pass, ""},
		{"a date that is past", refusalHint, refused("Retry-After: " + past.Format(http.TimeFormat)), torture.Warn, "past"},
		{"a date of RFC 850", refusalHint, refused("Retry-After: " + later.Format("Monday, 02-Jan-06 15:04:05 GMT")), torture.Fail, "form"},
		{"a fraction", refusalHint, refused("Retry-After: 1.5"), torture.Fail, "1.5"},
		{"two", refusalHint, refused("Retry-After: 1", "Retry-After: 2"), torture.Fail, "2 fields"},
		{"none", refusalHint, refused(), torture.Warn, "guess"},
		{"some", refusalHint, of("busy", append(many(5, 503), many(5, 503, "Retry-After: 1")...)...), torture.Warn, "5 of 10"},
		{"no refusal", ofRefusals(refusalHint), of("busy", many(3, 500)...), torture.NotApplicable, "no 429"},
		{"a herd", refusalSpread, refused("Retry-After: 3"), torture.Warn, "herd"},
		{"a herd in milliseconds", refusalSpread, refused("Retry-After: 1", "Retry-After-Ms: 700"), torture.Warn, "herd"},
		{"spread", refusalSpread, of("busy", append(many(15, 503, "Retry-After: 1"), many(15, 503, "Retry-After: 2")...)...), torture.Pass, "2 different"},
		{"few", refusalSpread, of("busy", many(19, 503, "Retry-After: 1")...), torture.NotApplicable, "20 are needed"},
		{"a quota", refusalRateLimit, refused(`RateLimit: "a";r=0;t=5`), torture.Pass, ""},
		{"a quota that remains", refusalRateLimit, refused(`RateLimit: "a";r=1;t=5`), torture.Warn, "r=0"},
		{"an older form", refusalRateLimit, refused("RateLimit: limit=10, remaining=0, reset=5"), torture.Warn, "draft"},
		{"earlier than the quota", refusalRateLimit, refused(`RateLimit: "a";r=0;t=60`, "Retry-After: 5"), torture.Warn, "earlier"},
		{"X-", refusalRateLimit, refused("X-RateLimit-Reset: 5"), torture.Pass, "before"},
		{"no quota", refusalRateLimit, refused(), torture.NotApplicable, ""},
		{"problem details", refusalProblem, problem(`{"type":"about:blank","title":"t","status":503,"more":[1]}`), torture.Pass, ""},
		{"an empty object", refusalProblem, problem(`{}`), torture.Pass, ""},
		{"no object", refusalProblem, problem(`"busy"`), torture.Fail, "no JSON object"},
		{"another status", refusalProblem, problem(`{"status":500}`), torture.Fail, "status"},
		{"a status in quotes", refusalProblem, problem(`{"status":"503"}`), torture.Fail, "status"},
		{"a title that is none", refusalProblem, problem(`{"title":1}`), torture.Fail, "title"},
		{"HTML", refusalProblem, refused("Content-Type: text/html"), torture.NotApplicable, "text/html"},
		{"some problems", refusalProblem, of("busy", append(problem(`{}`).by["busy"], many(2, 503)...)...), torture.Warn, "1 of 3"},
		{"a cache keeps 429", refusalCache, of("busy", many(2, 429, "Cache-Control: max-age=5")...), torture.Fail, "max-age=5"},
		{"a cache keeps 503", refusalCache, refused("Cache-Control: public, s-maxage=5"), torture.Warn, "s-maxage=5"},
		{"no cache", refusalCache, refused("Cache-Control: no-store, max-age=5"), torture.Pass, ""},
		{"kept", refusalConnection, refused(), torture.Pass, "24 of 24"},

		{"retries first", loadAttempt, of("attempts", retries(50, 10, 50, 40)...), torture.Pass, "40 of 50"},
		{"first attempts first", loadAttempt, of("attempts", retries(50, 40, 50, 10)...), torture.Warn, "before retries"},
		{"by chance", loadAttempt, of("attempts", retries(50, 20, 50, 30)...), torture.NotApplicable, "does not read"},
		{"by chance, though it announces", loadAttempt, of("attempts", append(retries(50, 20, 50, 30), announced)...), torture.Warn, "header Lull"},
		{"all refused", loadAttempt, of("attempts", retries(50, 50, 50, 50)...), torture.NotApplicable, "all was refused"},
		{"not late", loadLate, of("late", answered("no time left", 503, "")), torture.Pass, ""},
		{"late", loadLate, of("late", answered("no time left", 200, "")), torture.NotApplicable, "does not read"},
		{"late, though it announces", loadLate, of("late", answered("no time left", 200, "", "Lull: 1")), torture.Warn, "nobody waits"},
		{"room", loadLeft, slow(timed(200, 2*time.Second), true), torture.Pass, "room for another"},
		{"room, but no bound", loadLeft, slow(timed(200, 2*time.Second), false), torture.NotApplicable, "none of"},
		{"no room", loadLeft, slow(timed(503, 0), true), torture.Warn, "no room"},
		{"room after a wait", loadLeft, slow(timed(200, 3500*time.Millisecond), true), torture.Warn, "no room"},

		{"100", connectionExpect, of("expect", exchange{status: 200, continued: true, sent: true}), torture.Pass, "100"},
		{"417", connectionExpect, of("expect", exchange{status: 417}), torture.Pass, "417"},
		{"silence", connectionExpect, of("expect", exchange{status: 200, sent: true}), torture.Fail, "5s"},
	} {
		t.Run(x.name, func(t *testing.T) {
			if v := x.judge(x.seen); v.Grade != x.want || !strings.Contains(v.Why, x.why) {
				t.Errorf("%s (%s), want %s and %q", v.Grade, v.Why, x.want, x.why)
			}
		})
	}
}

// The cases of a card are well-formed, and made by a survey.
func TestTheCases(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Cases() {
		known := false
		for _, s := range surveys {
			known = known || s.name == c.survey
		}
		if names[c.Name] || !known || c.judge == nil || c.Does == "" || c.Right == "" || c.Source == "" {
			t.Errorf("%s is twice there, or not complete", c.Name)
		}
		names[c.Name] = true
	}
}

func ExampleCases() {
	for _, c := range Cases() {
		if c.Name == "key-body" {
			fmt.Printf("the client %s; the server %s (%s)\n", c.Does, c.Right, c.Source)
		}
	}
	// Output: the client sends another body under a key that was used; the server answers with 422 (draft-ietf-httpapi-idempotency-key-header-07, 2.7)
}
