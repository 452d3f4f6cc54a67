package torture

import "github.com/lullgo/lull/lab/torture/internal/words"

// notOver2 are the rules of those who do not come by HTTP/2.
var notOver2 = rules{NotApplicable: {noHTTP2, nothingCame}}

// http2Cases end streams and connections in ways that say whether a request was processed.
func http2Cases() []Case {
	const safe = "RFC 9113, 8.7: REFUSED_STREAM and a lower last stream guarantee that the request was not processed"
	notApplicable := notOver2.and(rules{NotApplicable: {couldNotUseIt}})
	unprocessed := notApplicable.and(rules{Pass: {again}, Warn: {againInVain, single}, Fail: oughtToRepeat[Fail]})
	processed := notApplicable.and(rules{Pass: {again, single}, Warn: {againInVain}, Fail: oughtToRepeat[Fail]})
	frames := func(name, does, method string, body int, f *fault, r rules, source string) Case {
		return Case{Name: "h2-" + name, Does: does, Source: source, method: method, body: body, door: doorFrames,
			script: []answer{{fault: f}, good}, exempt: (*Seen).notHTTP2, judge: repetitionHTTP2, rules: r, maybeBusy: mayOnlyBeBusy, judgedWhenBusy: true}
	}
	return []Case{
		frames("refused", "refuses the stream of a GET (REFUSED_STREAM), and takes the next", "GET", 0, frameRefuse, unprocessed, safe),
		frames("refused-post", "refuses the stream of a POST (REFUSED_STREAM), and takes the next", "POST", 100, frameRefuse, processed, safe),
		frames("goaway", "answers a GET with GOAWAY whose last stream is 0, and takes the next connection", "GET", 0, frameGoaway, unprocessed, safe),
		frames("goaway-post", "answers a POST with GOAWAY whose last stream is 0", "POST", 100, frameGoaway, processed, safe),
		frames("internal", "resets the stream of a GET (INTERNAL_ERROR), and takes the next", "GET", 0, frameInternal, processed, sourceMethods),
	}
}

// http2OnceCases are those of the requests that must not be repeated.
func http2OnceCases() []Case {
	return []Case{
		{Name: "once-h2-internal-post", Does: "reads a POST and resets its stream (INTERNAL_ERROR)", Source: sourceNotAgain, method: "POST", body: 100, door: doorFrames,
			script: []answer{{fault: frameInternal}, good}, exempt: (*Seen).notHTTP2, judge: once, rules: onlyOnce(Fail).and(notOver2)},
		{Name: "once-h2-goaway-post", Does: "reads a POST, and closes the connection with a GOAWAY that counts it among the processed", Source: "RFC 9113, 6.8: such a request may have been processed",
			method: "POST", body: 100, door: doorFrames, script: []answer{{fault: frameProcessed}, good}, exempt: (*Seen).notHTTP2, judge: once, rules: onlyOnce(Fail).and(notOver2)},
	}
}

// What the server plays, with the codes of RFC 9113, 7.
var (
	frameRefuse    = &fault{name: "refuse-stream", frame: func(stream uint32) []byte { return frame(frameRST, stream, 7) }}    // REFUSED_STREAM
	frameInternal  = &fault{name: "internal", frame: func(stream uint32) []byte { return frame(frameRST, stream, 2) }}         // INTERNAL_ERROR
	frameGoaway    = &fault{name: "goaway", frame: func(uint32) []byte { return frame(frameGone, 0, 0, 0) }}                   // the request is not among the processed
	frameProcessed = &fault{name: "goaway-after", frame: func(stream uint32) []byte { return frame(frameGone, 0, stream, 2) }} // it is
)

const noHTTP2 outcome = "does not speak HTTP/2 here"

// notHTTP2 returns the finding about a client that does not speak HTTP/2, and reports whether it is one of those.
func (s *Seen) notHTTP2() (finding, bool) {
	switch {
	case len(s.Attempts) == 0:
		return did(nothingCame, "no request: %s", words.Short(s.call().Text)), true
	case !s.Proto2:
		return did(noHTTP2, "the client does not speak HTTP/2 here"), true
	}
	return finding{}, false
}

// repetitionHTTP2 is repetition of what HTTP/2 says was not processed. Clients repeat that which repeat nothing else.
func repetitionHTTP2(s *Seen) finding {
	f := repetition(s)
	if f.outcome == noRetries {
		return did(single, "one attempt, and the call failed")
	}
	return f
}
