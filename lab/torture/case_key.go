package torture

import (
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

func keyCases() []Case {
	const source = "draft-ietf-httpapi-idempotency-key-header-06, 2"
	key := func(name, does string, judge func(*Seen) finding, r rules, script ...answer) Case {
		return Case{Name: "key-" + name, Does: does, Source: source, method: "POST", body: 100, key: true,
			script: append(script, good), judge: judge, rules: r}
	}
	same := rules{Pass: {sameKeys, sentOnce}, Fail: {severalKeys}, NotApplicable: {noKey, noRetries}}
	return []Case{
		key("503", "answers a POST with a key twice with 503", sameKey, same, answer{status: 503}, answer{status: 503}),
		key("reset", "reads a POST with a key and resets the connection", sameKey, same, answer{fault: faultReset}),
		key("429", "answers a POST with a key with 429 and Retry-After: 1", sameKey, same, answer{status: 429, header: []string{"Retry-After: 1"}, wait: time.Second}),
		key("409", "answers a POST with a key with 409: the first request is still at work", sameKey, same, answer{status: 409}),
		key("422", "answers a POST with a key with 422: the key was used with another body", once, rules{Pass: {sentOnce}, Fail: {sentAgain, didNotEnd}}, answer{status: 422}),
		{Name: "key-own", Does: "answers two POSTs to which the caller gave no key with 503, and then with 200", Source: source, method: "POST", body: 100, plan: plan{calls: 2},
			script: failing(503), judge: ownKeys, rules: rules{Pass: {keyForEach}, Fail: {severalKeys, sharedKey}, NotApplicable: {noKey, nothingCame}}},
	}
}

const (
	sameKeys    outcome = "sends the same key in each attempt"
	severalKeys outcome = "sends different keys in the attempts of a call"
	noKey       outcome = "sends no key"
	sharedKey   outcome = "sends the same key in two calls"
	keyForEach  outcome = "sends one key in all attempts of a call and another in the next call"
)

var keyHeaders = []string{"Idempotency-Key", "X-Idempotency-Key", "Paypal-Request-Id"}

// keysOf returns the different keys of attempts. Those without one count as an empty one.
func keysOf(list []Attempt) []string {
	var keys []string
	for _, a := range list {
		key := ""
		for _, name := range keyHeaders {
			if v := a.Header.Get(name); v != "" {
				key = v
			}
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// sameKey is the judge of keys: all attempts of a call have the one that the caller gave.
func sameKey(s *Seen) finding {
	list := s.first()
	keys := keysOf(list)
	switch {
	case len(list) == 0 || keys[0] == "":
		return did(noKey, "the request had no Idempotency-Key")
	case len(keys) > 1:
		return did(severalKeys, "the attempts of one call have different keys: %s", strings.Join(keys, ", "))
	case len(list) == 1 && !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	case len(list) == 1:
		return did(sentOnce, "one attempt: a key makes a retry safe, and it need not be made")
	}
	return did(sameKeys, "%s, one key", words.Plural(len(list), "attempt"))
}

func ownKeys(s *Seen) finding {
	a, b := keysOf(s.of(0)), keysOf(s.of(1))
	switch {
	case len(a) == 0 || len(b) == 0:
		return did(nothingCame, "the calls did not arrive")
	case a[0] == "" && b[0] == "" && len(a)+len(b) == 2:
		return did(noKey, "the client makes no keys")
	case len(a) > 1 || len(b) > 1:
		return did(severalKeys, "the attempts of one call have different keys: %s", strings.Join(append(a, b...), ", "))
	case a[0] == b[0]:
		return did(sharedKey, "two calls have the same key: %s", a[0])
	}
	return did(keyForEach, "one key for all attempts of a call, another for the next")
}
