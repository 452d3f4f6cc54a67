package backoff

import (
	"strconv"
	"strings"

	"github.com/lullgo/lull/internal/problem"
)

const (
	kindsAllowed   = "exponential, linear, constant, immediate or ethernet"
	jittersAllowed = "full, equal, none, decorrelated or proportional"
)

// MarshalText is String, for a Kind that is one.
func (k Kind) MarshalText() ([]byte, error) {
	if int(k) >= len(kindNames) {
		return nil, problem.Problem{Field: "Kind", Value: k, Allowed: kindsAllowed}
	}
	return []byte(kindNames[k]), nil
}

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (k *Kind) UnmarshalText(text []byte) error {
	n, ok := find(text, kindNames[:])
	if !ok {
		return problem.Problem{Field: "Kind", Value: strconv.Quote(string(text)), Allowed: kindsAllowed}
	}
	*k = Kind(n)
	return nil
}

// MarshalText is String, for a Jitter that is one.
func (j Jitter) MarshalText() ([]byte, error) {
	if int(j) >= len(jitterNames) {
		return nil, problem.Problem{Field: "Jitter", Value: j, Allowed: jittersAllowed}
	}
	return []byte(jitterNames[j]), nil
}

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (j *Jitter) UnmarshalText(text []byte) error {
	n, ok := find(text, jitterNames[:])
	if !ok {
		return problem.Problem{Field: "Jitter", Value: strconv.Quote(string(text)), Allowed: jittersAllowed}
	}
	*j = Jitter(n)
	return nil
}

func find(text []byte, names []string) (int, bool) {
	for i, name := range names {
		// Of equal length: folding takes some letters that are not ASCII for ones
		// that are.
		if len(name) == len(text) && strings.EqualFold(name, string(text)) {
			return i, true
		}
	}
	return 0, false
}
