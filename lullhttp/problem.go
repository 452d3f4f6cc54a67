package lullhttp

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// ProblemOverloaded is the problem type of a server that is overloaded and asks that this request
// is not repeated: Hint.Stop. RFC 9457 recommends a tag URI (RFC 4151) for a type that leads
// nowhere: it needs no server, and no client will try to fetch it.
const ProblemOverloaded = "tag:lullgo.github.io,2026:overloaded-do-not-retry"

// ProblemDetails is a body of the type application/problem+json (RFC 9457).
type ProblemDetails struct {
	Type     string // URI of the kind of problem; "about:blank" if there is none
	Title    string
	Status   int // as the body has it, which is advisory; 0 if there is none
	Detail   string
	Instance string
	Hint     Hint // of the extension members; Source is "" if there is none
}

// problemWaits are the extension members with which servers name a wait. The first valid one
// counts.
var problemWaits = [...]struct {
	name string
	unit time.Duration
}{
	{"retry_after", time.Second},
	{"retryAfter", time.Second},
	{"retry-after", time.Second},
	{"retry_after_ms", time.Millisecond},
	{"retryAfterMs", time.Millisecond},
	{"retry-after-ms", time.Millisecond},
}

// ParseProblem reads problem details. It returns false if body is not a JSON object. It ignores
// unknown members and, as the standard demands, those whose value is not of their type. It reads
// the whole of body, so the caller must limit its length. Names are case-sensitive.
func ParseProblem(body []byte) (ProblemDetails, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return ProblemDetails{}, false
	}
	p := ProblemDetails{
		Type:     stringIn(members["type"]),
		Title:    stringIn(members["title"]),
		Detail:   stringIn(members["detail"]),
		Instance: stringIn(members["instance"]),
	}
	p.Type = cmp.Or(p.Type, "about:blank")
	if n, err := strconv.Atoi(string(members["status"])); err == nil && n >= 100 && n <= 599 {
		p.Status = n
	}
	if p.Type == ProblemOverloaded {
		p.Hint = Hint{Stop: true, Source: "problem type"}
		return p, true
	}
	for _, w := range problemWaits {
		if d, ok := jsonWait(members[w.name], w.unit); ok {
			p.Hint = Hint{After: d, Source: "problem " + w.name}
			break
		}
	}
	return p, true
}

// stringIn returns the string in raw, or "" if it is anything else.
func stringIn(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// jsonWait reads a number of units that is not negative.
func jsonWait(raw json.RawMessage, unit time.Duration) (time.Duration, bool) {
	s := string(raw)
	if d, ok := parseDecimal(s, unit); ok {
		return d, true
	}
	if s == "" || !consists(s[:1], digits) {
		return 0, false
	}
	// What is left is a number with an exponent. A range error means infinity,
	// or a zero from below the smallest number.
	f, _ := strconv.ParseFloat(s, 64)
	f = math.Ceil(f * float64(unit))
	if f >= float64(maxWait) {
		return maxWait, true
	}
	return time.Duration(f), true
}

func isProblem(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), "application/problem+json")
}
