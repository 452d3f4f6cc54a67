package rivals

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
)

// between is the range of a wait, in milliseconds.
type between struct{ low, high float64 }

func exactly(ms ...float64) []between {
	return around(0, ms...)
}

// full is full jitter below each of the ceilings.
func full(ms ...float64) (b []between) {
	for _, m := range ms {
		b = append(b, between{0, m})
	}
	return b
}

func around(share float64, ms ...float64) (b []between) {
	for _, m := range ms {
		b = append(b, between{m * (1 - share), m * (1 + share)})
	}
	return b
}

// The waits of a call whose attempts all fail, from the clients' documentation.
// Where more than the first few are alike, most limits them.
func TestWaits(t *testing.T) {
	threeFull := full(100, 200, 400)
	for name, c := range map[string]struct {
		waits       []between
		most        int       // of retries looked at; zero: until the call ends
		rateLimited []between // nil: the same
	}{
		"lull":                  {waits: full(100, 200, 400, 800), rateLimited: full(1000, 2000, 4000, 8000)},
		"none":                  {},
		"naive-3":               {waits: exactly(0, 0, 0)},
		"fixed-100ms":           {waits: exactly(100, 100, 100)},
		"full-jitter":           {waits: threeFull},
		"ratio-10":              {waits: threeFull},
		"ratio-10-warmup-10":    {waits: threeFull},
		"ratio-10-warmup-100":   {waits: threeFull},
		"token-bucket":          {waits: threeFull},
		"token-bucket-arrivals": {waits: threeFull},
		"budget-aws-legacy":     {waits: threeFull},
		"budget-aws-2.1":        {waits: full(50, 100, 200)},
		"budget-finagle":        {waits: threeFull},
		"breaker-5s":            {waits: threeFull},
		"breaker-30s":           {waits: threeFull},
		"budget10+breaker5s":    {waits: threeFull},
		"aws-legacy-standard":   {waits: full(1000, 2000)},
		"aws-adaptive":          {waits: full(1000, 2000)},
		"aws-go-v2":             {waits: full(2000, 4000)},
		"aws-standard-2.1":      {waits: full(50, 100), rateLimited: full(1000, 2000)},
		"grpc":                  {waits: around(.2, 100, 200, 400)},
		"grpc-throttling-100":   {waits: around(.2, 100, 200, 400)},
		"grpc-no-throttling":    {waits: around(.2, 100, 200, 400, 800)},
		"envoy":                 {waits: full(25)},
		"envoy-retry-budget":    {waits: full(25)},
		"istio":                 {waits: full(25, 50)},
		"linkerd":               {waits: exactly(0, 0, 0, 0), most: 4},
		"linkerd-route":         {waits: []between{{25, 50}}},
		"finagle":               {waits: exactly(make([]float64, 20)...)},
		"polly":                 {waits: exactly(2000, 2000, 2000)},
		"dotnet-standard":       {most: 1, waits: full(2754.4)}, // 2 s/1.4 × 2 tanh 2; see TestSmooth
		"resilience4j":          {waits: exactly(500, 500)},
		"resilience4j-breaker":  {waits: exactly(500, 500)},
		"tenacity":              {waits: full(1000, 2000, 4000, 8000, 16000, 32000)},
		"tenacity-default":      {waits: exactly(0, 0, 0), most: 3},
		"cenkalti": {most: 14, waits: around(.5, 500, 750, 1125, 1687.5, 2531.25, 3796.875, 5695.3125, 8542.96875,
			12814.453, 19221.679, 28832.519, 43248.779, 60000, 60000)},
		"go-retryablehttp": {waits: exactly(1000, 2000, 4000, 8000)},
		"failsafe-go":      {waits: exactly(0, 0)},
		"failsafe-go-50ms": {waits: exactly(50, 50, 50)},
	} {
		p := find(t, name)
		for _, rateLimited := range []bool{false, true} {
			want, v := c.waits, transient
			if rateLimited {
				v = lull.Verdict{Kind: lull.KindRateLimited, Code: "429"}
				if c.rateLimited != nil {
					want = c.rateLimited
				}
			}
			for end, random := range map[string]func() uint64{"low": lowest, "high": highest} {
				most := c.most
				if most == 0 {
					most = -1
				}
				got, why := fail(t, p, paid(t, p), 0, v, random, most)
				if len(got) != len(want) {
					t.Errorf("%s, rate-limited %v: %d retries (then %v), want %d", name, rateLimited, len(got), why, len(want))
					continue
				}
				for i := range want {
					ms := want[i].low
					if end == "high" {
						ms = want[i].high
					}
					if d := got[i] - time.Duration(ms*1e6); d < -time.Microsecond*100 || d > time.Microsecond*100 {
						t.Errorf("%s, rate-limited %v, %s: wait %d is %v, want %vms", name, rateLimited, end, i+1, got[i], ms)
					}
				}
			}
		}
	}
}

// paid is a dependency under p after a hundred calls that succeeded, so that its
// budget pays for what the policy allows.
func paid(t *testing.T, p Preset) *lull.Dependency {
	d := dependency(t, p)
	for range 100 {
		succeed(t, d, 0)
	}
	return d
}

// cenkalti gives up when the wait would end after its 15 minutes.
func TestCenkaltiEnds(t *testing.T) {
	p := find(t, "cenkalti")
	waits, why := fail(t, p, dependency(t, p), 0, transient, nil, -1)
	var sum time.Duration
	for _, w := range waits {
		sum += w
	}
	if why != engine.Deadline || sum > 15*time.Minute || sum < 14*time.Minute {
		t.Errorf("%v after %v", why, sum)
	}
}
