package rivals

import (
	"slices"
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
)

func TestReads(t *testing.T) {
	hint := lull.Verdict{Kind: lull.KindTransient, Code: "503", After: 5}
	stop := lull.Verdict{Kind: lull.KindOverloaded, Code: "503", After: 5}
	slow := lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	many := lull.Verdict{Kind: lull.KindRateLimited, Code: "429", NeverSent: true}
	with := func(v lull.Verdict, k engine.VerdictKind, after bool) lull.Verdict {
		v.Kind = k
		if !after {
			v.After = 0
		}
		return v
	}
	for _, c := range []struct {
		r        Reads
		in, want lull.Verdict
	}{
		{everything, hint, hint}, {everything, stop, stop}, {everything, slow, slow}, {everything, many, many},
		{Reads{}, hint, with(hint, lull.KindTransient, false)},
		{Reads{RetryAfter: true}, hint, hint},
		{Reads{}, stop, with(stop, lull.KindTransient, false)},
		{Reads{RetryAfter: true}, stop, with(stop, lull.KindTransient, true)},
		{Reads{DontRetry: true}, stop, with(stop, lull.KindOverloaded, false)},
		{Reads{}, slow, with(slow, lull.KindPermanent, false)},
		{Reads{Timeouts: true}, slow, slow},
		{Reads{}, many, with(many, lull.KindTransient, false)},
		{Reads{RateLimits: true}, many, many},
	} {
		check.Equal(t, c.r.Verdict(c.in), c.want, "%+v of %+v", c.r, c.in)
	}
	// What is no failure, or final, is nobody's to read otherwise.
	for _, v := range []lull.Verdict{{}, {Kind: lull.KindSuccess}, {Kind: lull.KindPermanent, Code: "404"}, {Kind: engine.KindCanceled}} {
		check.Equal(t, (Reads{}).Verdict(v), v, "%+v", v)
	}
}

// Who does not repeat what timed out, who heeds Retry-After and "don't retry".
func TestWhatClientsRead(t *testing.T) {
	timeout := lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	hint := lull.Verdict{Kind: lull.KindTransient, Code: "503", After: 7 * second}
	stop := lull.Verdict{Kind: lull.KindOverloaded, Code: "503"}
	oneOf := func(name string, list string) bool { return slices.Contains(strings.Fields(list), name) }
	for _, p := range All() {
		mechanism := oneOf(p.Name, "lull queue hedged full-jitter token-bucket token-bucket-arrivals breaker-5s breaker-30s budget10+breaker5s budget-aws-legacy budget-aws-2.1 budget-finagle ratio-10 ratio-10-warmup-10 ratio-10-warmup-100")
		if p.Name == "none" {
			continue
		}
		_, why := fail(t, p, dependency(t, p), 0, timeout, nil, 0)
		check.Equal(t, why == engine.Permanent, oneOf(p.Name, "grpc grpc-throttling-100 grpc-no-throttling istio linkerd finagle"), "%s: after a timeout %v", p.Name, why)
		waits, _ := fail(t, p, paid(t, p), 0, hint, lowest, 1)
		if got, want := len(waits) == 1 && waits[0] == 7*second, mechanism || oneOf(p.Name, "aws-standard-2.1 dotnet-standard go-retryablehttp grpc grpc-throttling-100 grpc-no-throttling"); got != want {
			t.Errorf("%s: waits %v where it is asked to wait 7s", p.Name, waits)
		}
		_, why = fail(t, p, dependency(t, p), 0, stop, nil, 0)
		check.Equal(t, why == engine.Overloaded, mechanism || oneOf(p.Name, "grpc grpc-throttling-100 grpc-no-throttling"), "%s: asked not to retry it ends with %v", p.Name, why)
	}
}

// A client that repeats timeouts repeats them like any other failure, also while
// nobody else is answered. Lull itself waits for an answer.
func TestTimeoutsAreRepeatedLikeOtherFailures(t *testing.T) {
	timeout := lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	for _, p := range All() {
		after := func(v lull.Verdict) int {
			waits, _ := fail(t, p, dependency(t, p), 0, v, lowest, -1)
			return len(waits)
		}
		want := after(transient)
		if !p.Reads.Timeouts || p.Name == "lull" || p.Name == "hedged" {
			want = 0
		}
		check.Equal(t, after(timeout), want, "%s: retries after timeouts", p.Name)
	}
}
