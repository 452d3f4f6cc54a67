package throttle

import "github.com/lullgo/lull/internal/choice"

// Evidence is what the end of an attempt shows of the backend's load. Other values count as
// Neutral.
//
//	                     Adaptive             Cubic
//	Accepted             request and accept   sent, the rate may grow
//	RateLimited          request              sent, the rate falls
//	Unanswered           request              sent, the rate may grow
//	Neutral              not counted          sent
//	Unsent               not counted          its place is free
//	refused by Start     request              not counted
type Evidence uint8

const (
	// Accepted: the backend answered the request, also with an error of the application
	// (not found, permission denied, a 500 of its own): the book's accepts are no
	// successes.
	Accepted Evidence = iota
	// RateLimited: the request was refused because of load or quota: 429, a 503 with this
	// reason, RESOURCE_EXHAUSTED, a throttling error of an AWS service.
	RateLimited
	// Unanswered: nothing shows that the backend accepted the request: a timeout, a lost
	// connection, or an answer of an intermediary (502, 503, 504, UNAVAILABLE,
	// DEADLINE_EXCEEDED). Nobody asked for a lower rate, so Cubic does not lower it, as in
	// the AWS SDKs.
	Unanswered
	// Neutral: the attempt was sent, and its end shows nothing: the caller went away.
	Neutral
	// Unsent: Start let the attempt pass, but it was never made.
	Unsent
)

var evidenceNames = [...]string{"accepted", "rate_limited", "unanswered", "neutral", "unsent"}

// String is the evidence in lower case, such as "rate_limited".
func (o Evidence) String() string { return choice.Name("outcome", evidenceNames[:], o) }
