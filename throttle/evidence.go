package throttle

import "github.com/lullgo/lull/internal/choice"

// Evidence is what the end of an attempt shows of the backend's load. Values
// that are none of these are taken as Neutral.
//
//	                               Adaptive              Cubic
//	Accepted                       request and accept    sent, the rate may grow
//	RateLimited                      request               sent, the rate falls
//	Unanswered                     request               sent, the rate may grow
//	Neutral                        not counted           sent
//	Unsent                         not counted           its place is given back
//	refused by Ask, not reported   request               not counted
type Evidence uint8

const (
	// Accepted: the backend took the request on and answered it. An error of the
	// application is an answer too (not found, permission denied, or a 500 of its
	// own): the book's accepts are "requests accepted by the backend", not successes.
	Accepted Evidence = iota
	// RateLimited: the backend, or what speaks for it, refused the request because of
	// load or quota: 429, a 503 that gives this reason, RESOURCE_EXHAUSTED, a throttling error
	// of an AWS service.
	RateLimited
	// Unanswered: nothing shows that the backend took the request on. It timed out,
	// the connection failed, or something on the way answered in the backend's place
	// (502, 503, 504, UNAVAILABLE, DEADLINE_EXCEEDED). It was not accepted, so
	// Adaptive counts it against the backend; but nobody asked for a lower rate, and
	// Cubic takes it as the AWS SDKs take every error but throttling.
	Unanswered
	// Neutral: the attempt was sent, and its end shows nothing of the backend: the
	// caller went away.
	Neutral
	// Unsent: Ask let the attempt pass, and it was never made: the caller gave up
	// during the wait, or something else refused it.
	Unsent
)

var evidenceNames = [...]string{"accepted", "rate_limited", "unanswered", "neutral", "unsent"}

// String is the outcome in lower case, such as "rate_limited".
func (o Evidence) String() string { return choice.Name("outcome", evidenceNames[:], o) }
