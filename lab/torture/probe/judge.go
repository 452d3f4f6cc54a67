package probe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/lab/torture"
	"github.com/lullgo/lull/lab/torture/internal/words"
	"github.com/lullgo/lull/lullhttp"
)

// replayFields are the fields by which servers mark an answer that was given before.
var replayFields = []string{"Idempotency-Replayed", "Idempotent-Replayed", "X-Idempotency-Replayed", "X-Idempotent-Replayed"}

func isReplayed(x *exchange) bool {
	return slices.ContainsFunc(replayFields, func(name string) bool {
		return strings.EqualFold(x.header.Get(name), "true") || x.header.Get(name) == "?1"
	})
}

// claimsKeys reports whether a key changes what the server answers. If it does not, it
// returns why nothing is seen.
func claimsKeys(s *seen) (string, bool) {
	first, _ := s.named("keys", "the first")
	fresh, _ := s.named("keys", "another key")
	again, _ := s.named("keys", "the same again")
	without, _ := s.named("keys", "without a key")
	other, hasOther := s.named("keys", "the same key, another body")
	switch {
	case isReplayed(again),
		again.status >= 400 && again.status < 500 && fresh.ok(),
		without.status >= 400 && without.status < 500,
		hasOther && other.status >= 400 && other.status < 500,
		again.same(first) && !fresh.same(first): // fresh came between the two
		return "", true
	case !again.same(first):
		return "the server ignores Idempotency-Key: the same key twice got two answers, and was carried out twice", false
	}
	return "the server seems to ignore Idempotency-Key: its answers are the same with any key and without", false
}

func keyAgain(s *seen) torture.Verdict {
	first, _ := s.named("keys", "the first")
	for _, what := range []string{"the same again", "the same, a third time"} {
		again, _ := s.named("keys", what)
		switch {
		case again.same(first):
		case again.ok() && isReplayed(again):
			return torture.Warn.Because("%s was answered as a replay, with another body than the first", what)
		case again.ok():
			return torture.Fail.Because("%s got another answer: the request was carried out twice under one key", what)
		default:
			return torture.Warn.Because("%s got %s; the first had got %s", what, again.short(), first.short())
		}
	}
	return torture.Pass.Because("the same answer three times: %d and %s", first.status, words.Plural(len(first.body), "byte"))
}

func keyBody(s *seen) torture.Verdict {
	first, _ := s.named("keys", "the first")
	fresh, _ := s.named("keys", "another key")
	other, ok := s.named("keys", "the same key, another body")
	switch {
	case !ok:
		return torture.NotApplicable.Because("not seen: no second body is known that the server takes")
	case other.status == http.StatusUnprocessableEntity:
		return torture.Pass.Because("422")
	case other.status >= 400 && other.status < 500:
		return torture.Warn.Because("%d; the draft asks for 422", other.status)
	case other.ok() && (isReplayed(other) || other.same(first) && !fresh.same(first)):
		return torture.Warn.Because("it got the answer to the first body: its client believes that the other was carried out")
	case other.ok():
		return torture.Fail.Because("%d: it was carried out under a key that was used", other.status)
	}
	return torture.Warn.Because("%s; the draft asks for 422", other.short())
}

func keyMissing(s *seen) torture.Verdict {
	x, _ := s.named("keys", "without a key")
	switch {
	case x.status == http.StatusBadRequest:
		return torture.Pass.Because("400")
	case x.ok():
		return torture.NotApplicable.Because("%d: the server does not require a key here", x.status)
	}
	return torture.Warn.Because("%s; the draft asks for 400", x.short())
}

func keyAtOnce(s *seen) torture.Verdict {
	conflicts, same, odd := 0, 0, map[string]int{}
	list := s.by["at-once"]
	for len(list) > 0 {
		key := list[0].key
		n := slices.IndexFunc(list, func(x exchange) bool { return x.key != key })
		if n < 0 {
			n = len(list)
		}
		var first *exchange
		for i := range list[:n] {
			x := &list[i]
			switch {
			case x.ok() && first == nil:
				first = x
			case x.ok() && x.same(first):
				same++
			case x.ok():
				return torture.Fail.Because("two of %d at once got different answers: the request was carried out twice under one key", n)
			case x.status == http.StatusConflict:
				conflicts++
			default:
				odd[x.short()]++
			}
		}
		if first == nil {
			odd["no success of a round"]++
		}
		list = list[n:]
	}
	if len(odd) > 0 {
		return torture.Warn.Because("%d times 409, %d times the same answer, and %s", conflicts, same, counted(odd))
	}
	return torture.Pass.Because("of each eight one was carried out; the others got 409 (%d) or the same answer (%d)", conflicts, same)
}

// counted returns what there is how often.
func counted(n map[string]int) string {
	parts := slices.Sorted(maps.Keys(n))
	for i, what := range parts {
		parts[i] = fmt.Sprintf("%d × %s", n[what], what)
	}
	return strings.Join(parts, ", ")
}

func keyError(s *seen) torture.Verdict {
	first, again := &s.by["error"][0], &s.by["error"][1]
	switch {
	case again.same(first) || isReplayed(again):
		return torture.Pass.Because("%d again, as the first time", again.status)
	case again.status == http.StatusConflict:
		return torture.Pass.Because("409: the outcome of the first is not known, and it is not carried out again")
	case again.status >= 500:
		return torture.Warn.Because("%d with another body: it seems to have been carried out again after an error", again.status)
	case again.ok():
		return torture.Warn.Because("%d: it was carried out again after a %d; right only if that had no effect", again.status, first.status)
	}
	return torture.Warn.Because("%s after a %d", again.short(), first.status)
}

// problems is the judge of the bodies of errors.
func problems(list []exchange) torture.Verdict {
	n := 0
	for i := range list {
		x := &list[i]
		media, _, _ := strings.Cut(x.header.Get("Content-Type"), ";")
		if !strings.EqualFold(strings.TrimSpace(media), "application/problem+json") {
			continue
		}
		n++
		if why := malformed(x); why != "" {
			return torture.Fail.Because("an answer of %d: %s", x.status, why)
		}
	}
	switch {
	case len(list) == 0:
		return torture.NotApplicable.Because("not seen: there was no error")
	case n == 0:
		return torture.NotApplicable.Because("the errors are no problem details: %s", words.Short(cmp.Or(list[0].header.Get("Content-Type"), "no Content-Type")))
	case n < len(list):
		return torture.Warn.Because("%d of %d are problem details", n, len(list))
	}
	return torture.Pass.Because("%d of %d are problem details", n, len(list))
}

// malformed returns what is wrong with problem details, and nothing if nothing is.
func malformed(x *exchange) string {
	if x.method == http.MethodHead {
		return ""
	}
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(x.body))
	if err := d.Decode(&members); err != nil || members == nil {
		return "the problem details are no JSON object"
	}
	for _, name := range []string{"type", "title", "detail", "instance"} {
		v, there := members[name]
		text, isString := v.(string)
		if there && !isString {
			return fmt.Sprintf("the member %q is no string", name)
		}
		if _, err := url.Parse(text); err != nil && (name == "type" || name == "instance") {
			return fmt.Sprintf("the member %q is no reference to a URI", name)
		}
	}
	if v, there := members["status"]; there {
		if n, ok := v.(float64); !ok || int(n) != x.status || n != math.Trunc(n) {
			return fmt.Sprintf("the member \"status\" is %v", v)
		}
	}
	return ""
}

func keyProblem(s *seen) torture.Verdict {
	return problems(slices.DeleteFunc(slices.Concat(s.by["keys"], s.by["at-once"]), func(x exchange) bool { return x.status < 400 }))
}

// refusals returns what was refused: with 429 or 503.
func (s *seen) refusals() []exchange {
	return slices.DeleteFunc(slices.Clone(s.by["busy"]), func(x exchange) bool { return !x.refused() })
}

func refusalStatus(s *seen) torture.Verdict {
	refused, odd := map[string]int{}, map[string]int{}
	for _, x := range s.by["busy"] {
		switch {
		case x.refused():
			refused[x.short()]++
		case !x.ok():
			odd[x.short()]++
		}
	}
	if len(odd) > 0 {
		maps.Copy(refused, odd) // they have no status in common
		return torture.Warn.Because("not all refusals are 503 or 429: of %s, %s", words.Plural(len(s.by["busy"]), "request"), counted(refused))
	}
	return torture.Pass.Because("of %s, %s", words.Plural(len(s.by["busy"]), "request"), counted(refused))
}

// ofRefusals returns a judge of what was refused in a way that says so, where something was.
func ofRefusals(judge func(*seen) torture.Verdict) func(*seen) torture.Verdict {
	return func(s *seen) torture.Verdict {
		if len(s.refusals()) == 0 {
			return torture.NotApplicable.Because("not seen: there was no 429 and no 503 (see refusal-status)")
		}
		return judge(s)
	}
}

func refusalHint(s *seen) torture.Verdict {
	list := s.refusals()
	n, past := 0, 0
	now := time.Now()
	for _, x := range list {
		values := x.header.Values("Retry-After")
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 {
			return torture.Fail.Because("%d fields Retry-After in one answer: %s", len(values), words.Short(strings.Join(values, " and ")))
		}
		at, err := http.ParseTime(values[0])
		wait, ok := lullhttp.ParseRetryAfter(values[0], now)
		switch {
		case !ok:
			return torture.Fail.Because("Retry-After: %s is neither whole seconds nor a date", words.Short(values[0]))
		case err == nil && at.UTC().Format(http.TimeFormat) != values[0]:
			return torture.Fail.Because("Retry-After: %s is a date in a form that must not be sent any more", words.Short(values[0]))
		case err == nil && wait == 0:
			past++
		}
		n++
	}
	switch {
	case n == 0:
		return torture.Warn.Because("no Retry-After: clients must guess")
	case n < len(list):
		return torture.Warn.Because("%d of %s have a Retry-After", n, words.Plural(len(list), "refusal"))
	case past > 0:
		return torture.Warn.Because("%d of %s name a date that is past", past, words.Plural(len(list), "refusal"))
	}
	return torture.Pass.Because("%s, each with a Retry-After", words.Plural(len(list), "refusal"))
}

// fewestRefusals is how many refusals a statement about them needs. The chance that values which are
// drawn evenly from two are all the same is below 1 in 500,000.
const fewestRefusals = 20

// milliseconds returns the wait that an answer names in milliseconds; empty if it names none.
func milliseconds(x *exchange) string {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms", "Grpc-Retry-Pushback-Ms"} {
		if v := x.header.Get(name); v != "" {
			return v
		}
	}
	var details struct {
		Ms json.Number `json:"retry_after_ms"`
	}
	if json.Unmarshal(x.body, &details) == nil {
		return details.Ms.String()
	}
	return ""
}

func refusalSpread(s *seen) torture.Verdict {
	seconds, fine := map[string]int{}, map[string]int{}
	n, nFine := 0, 0
	for _, x := range s.refusals() {
		v := x.header.Get("Retry-After")
		if _, ok := lullhttp.ParseRetryAfter(v, time.Now()); !ok {
			continue
		}
		seconds[v]++
		n++
		if ms := milliseconds(&x); ms != "" {
			fine[ms]++
			nFine++
		}
	}
	switch {
	case n < fewestRefusals:
		return torture.NotApplicable.Because("not seen: %s with a Retry-After that can be read, and %d are needed", words.Plural(n, "refusal"), fewestRefusals)
	case len(seconds) > 1:
		return torture.Pass.Because("%s, %d different values", words.Plural(n, "refusal"), len(seconds))
	case nFine == n && len(fine) > 1:
		return torture.Pass.Because("%s, one value in seconds, and %d different ones in milliseconds", words.Plural(n, "refusal"), len(fine))
	}
	v := slices.Collect(maps.Keys(seconds))[0]
	return torture.Warn.Because("%s, all with Retry-After: %s: those who obey come back as a herd", words.Plural(n, "refusal"), words.Short(v))
}

// olderFields are the names of rate limits before the field RateLimit was one.
var olderFields = []string{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}

func refusalRateLimit(s *seen) torture.Verdict {
	list := s.refusals()
	current, old := 0, 0
	for _, x := range list {
		values := x.header.Values("Ratelimit")
		if len(values) == 0 {
			if slices.ContainsFunc(olderFields, func(name string) bool { return x.header.Get(name) != "" }) {
				old++
			}
			continue
		}
		current++
		now := time.Now()
		hint, ok := lullhttp.ParseHint(http.Header{"Ratelimit": values}, x.status, now)
		if !ok {
			return torture.Warn.Because("RateLimit: %s does not say when to come back: it takes a quota with r=0 and a t, in the form of the draft", words.Short(strings.Join(values, ", ")))
		}
		if wait, ok := lullhttp.ParseRetryAfter(x.header.Get("Retry-After"), now); ok && wait+time.Second < hint.After {
			return torture.Warn.Because("Retry-After: %s is earlier than the RateLimit field says: %s", x.header.Get("Retry-After"), words.Short(strings.Join(values, ", ")))
		}
	}
	switch {
	case current == len(list):
		return torture.Pass.Because("%s, each with a RateLimit field", words.Plural(current, "refusal"))
	case current > 0:
		return torture.Warn.Because("%d of %s have a RateLimit field", current, words.Plural(len(list), "refusal"))
	case old > 0:
		return torture.Pass.Because("%d of %s have fields of the kind that came before the draft's (X-RateLimit-Reset and others)", old, words.Plural(len(list), "refusal"))
	}
	return torture.NotApplicable.Because("there are no RateLimit fields")
}

func refusalProblem(s *seen) torture.Verdict { return problems(s.refusals()) }

func refusalCache(s *seen) torture.Verdict {
	list := s.refusals()
	for _, x := range list {
		control := strings.ToLower(strings.Join(x.header.Values("Cache-Control"), ","))
		if strings.Contains(control, "no-store") {
			continue
		}
		for part := range strings.SplitSeq(control, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			n, err := strconv.Atoi(strings.Trim(value, `"`))
			if (name == "max-age" || name == "s-maxage") && err == nil && n > 0 {
				grade := torture.Warn
				if x.status == http.StatusTooManyRequests {
					grade = torture.Fail
				}
				return grade.Because("an answer of %d has Cache-Control: %s: a cache gives it to others", x.status, words.Short(control))
			}
		}
	}
	return torture.Pass.Because("no cache may keep any of %s", words.Plural(len(list), "refusal"))
}

func refusalConnection(s *seen) torture.Verdict {
	last := map[int]bool{} // lanes whose last answer was a refusal
	next, kept := 0, 0
	for _, x := range s.by["busy"] {
		if last[x.lane] {
			next++
			if x.reused {
				kept++
			}
		}
		last[x.lane] = x.refused()
	}
	switch {
	case next == 0:
		return torture.NotApplicable.Because("not seen: no request followed a refusal on its connection")
	case float64(kept) < 0.9*float64(next):
		return torture.Warn.Because("after %d of %s the connection was closed", next-kept, words.Plural(next, "refusal"))
	}
	return torture.Pass.Because("after %d of %s the connection was kept", kept, words.Plural(next, "refusal"))
}

// noChance is a number of standard deviations that chance exceeds once in 10,000 cases, on one side.
const noChance = 3.72

func loadAttempt(s *seen) torture.Verdict {
	var n, refused [2]float64 // first attempts, retries
	for _, x := range s.by["attempts"] {
		kind := 0
		if x.attempt > 1 {
			kind = 1
		}
		n[kind]++
		if !x.ok() {
			refused[kind]++
		}
	}
	if n[0] == 0 || n[1] == 0 {
		return torture.NotApplicable.Because("not seen: there were no requests")
	}
	share := (refused[0] + refused[1]) / (n[0] + n[1])
	of := fmt.Sprintf("%.0f of %.0f retries were refused, and %.0f of %.0f first attempts", refused[1], n[1], refused[0], n[0])
	deviation := math.Sqrt(share * (1 - share) * (1/n[0] + 1/n[1]))
	z := 0.0
	if deviation > 0 {
		z = (refused[1]/n[1] - refused[0]/n[0]) / deviation
	}
	switch {
	case z > noChance:
		return torture.Pass.Because("%s", of)
	case z < -noChance:
		return torture.Warn.Because("%s: it refuses first attempts before retries", of)
	case share == 1:
		return torture.NotApplicable.Because("not seen: all was refused, %s", of)
	case share == 0:
		return torture.NotApplicable.Because("not seen: nothing was refused")
	case s.announces():
		return torture.Warn.Because("%s: nothing shows that it reads Lull-Attempt, although it sends the header Lull", of)
	}
	return torture.NotApplicable.Because("the server does not read Lull-Attempt: %s", of)
}

func loadLate(s *seen) torture.Verdict {
	x, _ := s.named("late", "no time left")
	switch {
	case x.status >= 500:
		return torture.Pass.Because("%d", x.status)
	case s.announces():
		return torture.Warn.Because("%s: it worked on a request that nobody waits for, although it sends the header Lull", x.short())
	}
	return torture.NotApplicable.Because("the server does not read Lull-Timeout: it answers %s", x.short())
}

func loadDeadline(s *seen) torture.Verdict {
	peace, _ := s.named("short", "at peace")
	x, _ := s.named("short", "a quarter of that time")
	switch {
	case x.status >= 500:
		return torture.Pass.Because("%d after %s; it takes %s without a deadline", x.status, words.Rounded(x.took), words.Rounded(peace.took))
	case s.announces():
		return torture.Warn.Because("%s after %s, of which a quarter was left: it works on, although it sends the header Lull", x.short(), words.Rounded(x.took))
	}
	return torture.NotApplicable.Because("the server does not read Lull-Timeout: it answers %s after %s", x.short(), words.Rounded(x.took))
}

func loadLeft(s *seen) torture.Verdict {
	peace, _ := s.named("left", "at peace")
	after, bounded, room := 0, len(s.refusals()) > 0 && s.target.Busy == s.target.Slow, false
	left := 0
	for _, x := range s.by["left"] {
		switch x.what {
		case "fill":
			bounded = bounded || x.refused()
			if x.cancelled {
				left++
			}
		case "afterwards":
			after++
			room = room || x.ok() && x.took < peace.took*3/2
		}
	}
	switch {
	case left == 0:
		return torture.NotApplicable.Because("not seen: none of the slow requests was still at work after a quarter of its time")
	case after == 0:
		return torture.NotApplicable.Because("not seen: this machine was too busy to ask in time")
	case !room:
		return torture.Warn.Because("there was no room for another request before the work of the %d whose clients had gone would have ended", left)
	case !bounded:
		return torture.NotApplicable.Because("not seen: none of %s was refused, and so nothing shows how much is at work", words.Plural(left, "slow request"))
	}
	return torture.Pass.Because("the clients of %s left after %s of %s, and there was room for another at once", words.Plural(left, "request"), words.Rounded(peace.took/4), words.Rounded(peace.took))
}

func connectionCalls(s *seen) torture.Verdict {
	again := 0
	list := s.by["calls"]
	for _, x := range list[min(1, len(list)):] {
		if !x.reused {
			again++
		}
	}
	if again > 0 {
		return torture.Warn.Because("%s for %s, one after the other", words.Plural(again+1, "connection"), words.Plural(len(list), "request"))
	}
	return torture.Pass.Because("one connection for %s", words.Plural(len(list), "request"))
}

func connectionExpect(s *seen) torture.Verdict {
	x := s.by["expect"][0]
	switch {
	case x.status == 0:
		return torture.Fail.Because("no answer: %s", x.err)
	case x.continued:
		return torture.Pass.Because("100, and then %d", x.status)
	case x.sent:
		return torture.Fail.Because("nothing came within %s, so that the body was sent without a 100", words.Rounded(continueWithin))
	}
	return torture.Pass.Because("%d, before the body was sent", x.status)
}

func connectionOld(s *seen) torture.Verdict {
	x := s.by["old"][0]
	switch {
	case len(x.infos) > 0:
		return torture.Fail.Because("%v to a client of HTTP/1.0, which does not know it", x.infos)
	case x.status == 0:
		return torture.NotApplicable.Because("not seen: no answer to HTTP/1.0: %s", x.err)
	}
	return torture.Pass.Because("%d alone", x.status)
}

func connectionFinal(s *seen) torture.Verdict {
	found := map[string]int{}
	for _, x := range s.all() {
		for _, status := range x.infos {
			if status != http.StatusContinue {
				found[strconv.Itoa(status)]++
			}
		}
		if x.status == http.StatusSwitchingProtocols {
			return torture.Fail.Because("101 to a request that asked for no other protocol")
		}
		if len(x.infos) > 0 && x.status == 0 && !x.cancelled {
			return torture.Fail.Because("%v, and then no answer: %s", x.infos, x.err)
		}
	}
	if len(found) == 0 {
		return torture.NotApplicable.Because("the server sends no 1xx but 100")
	}
	return torture.Pass.Because("%s, each with an answer after it", counted(found))
}
