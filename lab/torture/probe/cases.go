package probe

const (
	draft    = "draft-ietf-httpapi-idempotency-key-header-07"
	overload = "SRE book, Handling Overload"
)

// Cases returns all cases, in the order of a card.
func Cases() []Case {
	return []Case{
		{Name: "key-again", Group: "keys", Does: "sends the same POST with the same key a second and a third time", survey: "keys", judge: keyAgain,
			Right: "answers as it did the first time, and carries nothing out", Source: draft + ", 2.6"},
		{Name: "key-body", Group: "keys", Does: "sends another body under a key that was used", survey: "keys", judge: keyBody,
			Right: "answers with 422", Source: draft + ", 2.7"},
		{Name: "key-missing", Group: "keys", Does: "sends a POST without a key", survey: "keys", judge: keyMissing,
			Right: "answers with 400, if it requires a key", Source: draft + ", 2.7"},
		{Name: "key-at-once", Group: "keys", Does: "sends the same POST eight times at once, five times with a new key", survey: "at-once", judge: keyAtOnce,
			Right: "carries out one, and answers the others with 409 or with what the first got", Source: draft + ", 2.6 and 2.7"},
		{Name: "key-error", Group: "keys", Does: "sends a POST with a key that fails with 500 or above, and then the same again", survey: "error", judge: keyError,
			Right: "answers as it did the first time, success or error", Source: draft + ", 2.6"},
		{Name: "key-problem", Group: "keys", Does: "reads what errors about keys say", survey: "at-once", judge: keyProblem,
			Right: "describes them as problem details", Source: draft + ", 2.7; RFC 9457"},

		{Name: "refusal-status", Group: "refusals", Does: "sends more requests at once than the server takes", survey: "busy", judge: refusalStatus,
			Right: "answers 503 if it is overloaded, 429 if this client asks too much, and nothing else", Source: "RFC 9110, 15.6.4; RFC 6585, 4"},
		{Name: "refusal-hint", Group: "refusals", Does: "reads the Retry-After of refusals", survey: "busy", judge: ofRefusals(refusalHint),
			Right: "sends one, in whole seconds or as a date in the form of RFC 1123", Source: "RFC 9110, 10.2.3 and 5.6.7"},
		{Name: "refusal-spread", Group: "refusals", Does: "compares the Retry-After of some fifty refusals", survey: "busy", judge: refusalSpread,
			Right: "does not ask all of them to come back at the same moment", Source: "AWS Builders' Library, Timeouts, retries and backoff with jitter"},
		{Name: "refusal-ratelimit", Group: "refusals", Does: "reads the RateLimit fields of refusals", survey: "busy", judge: ofRefusals(refusalRateLimit),
			Right: "says in them when the quota is there again, and not later than in Retry-After", Source: "draft-ietf-httpapi-ratelimit-headers-10"},
		{Name: "refusal-problem", Group: "refusals", Does: "reads the bodies of refusals", survey: "busy", judge: ofRefusals(refusalProblem),
			Right: "sends problem details that are well-formed, and have the status of the answer", Source: "RFC 9457, 3"},
		{Name: "refusal-cache", Group: "refusals", Does: "reads whether a cache may keep a refusal", survey: "busy", judge: ofRefusals(refusalCache),
			Right: "lets no cache keep it", Source: "RFC 6585, 4: responses with 429 must not be stored by a cache"},
		{Name: "refusal-connection", Group: "refusals", Does: "sends the next request after a refusal", survey: "busy", judge: ofRefusals(refusalConnection),
			Right: "keeps the connection: a handshake costs more than a refusal", Source: "RFC 9112, 9.3 (persistence)"},

		{Name: "load-attempt", Group: "load", Does: "marks half of the requests that are too many with Lull-Attempt: 2", survey: "attempts", judge: loadAttempt,
			Right: "refuses retries before first attempts", Source: overload + ": attempts are counted in the request; docs/servers.md"},
		{Name: "load-late", Group: "load", Does: "sends a GET with Lull-Timeout: 0: nobody waits for the answer", survey: "late", judge: loadLate,
			Right: "does not work on it", Source: "SRE book, Addressing Cascading Failures: missed deadlines; gRPC deadlines"},
		{Name: "load-deadline", Group: "load", Does: "sends a GET of a slow path with a quarter of the time that it takes", survey: "short", judge: loadDeadline,
			Right: "gives up when the time is over", Source: "SRE book, Addressing Cascading Failures: deadline propagation"},
		{Name: "load-left", Group: "load", Does: "fills the server with slow requests, closes their connections, and sends another one", survey: "left", judge: loadLeft,
			Right: "stops work that nobody waits for", Source: "SRE book, Addressing Cascading Failures: cancellation propagation"},

		{Name: "connection-calls", Group: "connections", Does: "sends ten GETs, one after the other", survey: "calls", judge: connectionCalls,
			Right: "keeps the connection", Source: "RFC 9112, 9.3 (persistence)"},
		{Name: "connection-expect", Group: "connections", Does: "sends a POST with Expect: 100-continue, and waits with the body", survey: "expect", judge: connectionExpect,
			Right: "answers at once, with 100 or with a final status", Source: "RFC 9110, 10.1.1"},
		{Name: "connection-old", Group: "connections", Does: "sends a request of HTTP/1.0, with an Expect if it is a POST", survey: "old", judge: connectionOld,
			Right: "sends no 1xx", Source: "RFC 9110, 15.2 and 10.1.1"},
		{Name: "connection-final", Group: "connections", Does: "reads the 1xx of all answers", survey: "calls", judge: connectionFinal,
			Right: "sends a final status after each, and 101 to nobody who did not ask", Source: "RFC 9110, 15.2 and 15.2.2"},
	}
}
