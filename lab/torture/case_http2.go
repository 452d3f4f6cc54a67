package torture

import (
	"github.com/lullgo/lull/lab/torture/internal/words"
)

// What clients do in these cases.
const (
	noHTTP2 outcome = "does not speak HTTP/2 here"
)

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
	if f, ok := s.notHTTP2(); ok {
		return f
	}
	f := repetition(s)
	if f.outcome == noRetries {
		return did(single, "one attempt, and the call failed")
	}
	return f
}

// onceHTTP2 is once for a request that must come by HTTP/2.
func onceHTTP2(s *Seen) finding {
	if f, ok := s.notHTTP2(); ok {
		return f
	}
	return once(s)
}
