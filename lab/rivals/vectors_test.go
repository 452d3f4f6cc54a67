package rivals

import (
	"encoding/json"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// The published cases of other systems, run through the engine under their
// presets. Those that a leaf has in its testdata are read there. Each file
// names its source.
func vectors(t *testing.T, path string, into any) {
	t.Helper()
	data := must.Have(os.ReadFile(path))
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

type awsStep struct {
	Status     int
	Error      string
	RetryAfter string // in milliseconds
	Outcome    string
	Quota      *int
	Delay      *float64 // seconds
}

// verdict returns the verdict of a driver that knows AWS.
func (s awsStep) verdict(t *testing.T) lull.Verdict {
	switch {
	case s.Status == 200:
		return lull.Verdict{Kind: lull.KindSuccess}
	case s.Status == 404:
		return lull.Verdict{Kind: lull.KindPermanent, Code: "404"}
	case s.Error == "Throttling":
		return lull.Verdict{Kind: lull.KindRateLimited, Code: s.Error}
	case s.Status != 500 && s.Status != 502:
		t.Fatalf("status %d is not known here", s.Status)
	}
	v := lull.Verdict{Kind: lull.KindTransient, Code: "5xx"}
	var ms int
	if json.Unmarshal([]byte(s.RetryAfter), &ms) == nil { // "invalid" is not
		v.After = time.Duration(ms) * time.Millisecond
	}
	return v
}

// An awsCaller plays the responses that one caller sees. A call ends with
// anything but a retry, and the next response is that of another call.
type awsCaller struct {
	p    Preset
	d    *lull.Dependency
	now  time.Duration
	call engine.Call
	busy bool
}

var awsOutcomes = map[lull.Reason]string{
	engine.Success:           "success",
	engine.AttemptsExhausted: "max_attempts_exceeded",
	engine.BudgetExhausted:   "retry_quota_exceeded",
	engine.Permanent:         "fail_request",
}

func (a *awsCaller) play(t *testing.T, s awsStep) (outcome string, wait time.Duration) {
	// Where the source of the cases fixes the jitter factor at 1 the draw is the
	// highest; a wait that was asked for is as asked with the lowest.
	random := highest
	v := s.verdict(t)
	if v.After > 0 {
		random = lowest
	}
	if !a.busy {
		var step engine.Step
		if a.call, step = a.d.State().Start(a.now, engine.Spec{}); step.Done {
			t.Fatalf("refused: %v", step.Reason)
		}
		a.busy = true
	}
	if step := a.call.Attempt(a.now, random); step.Done {
		t.Fatalf("no attempt: %v", step.Reason)
	}
	step := a.call.Next(a.now, a.p.Reads.Verdict(v), random)
	if step.Done {
		a.busy = false
		return awsOutcomes[step.Reason], 0
	}
	a.now += step.Wait
	return "retry_request", step.Wait
}

func (a *awsCaller) quota() int { return int(a.d.Budget().(*awsQuota).tokens.Load()) }

func TestAWSCases(t *testing.T) {
	// Where the engine waits otherwise, on purpose, and for how long.
	otherwise := map[string]time.Duration{
		// A wait that was asked for is not cut short.
		"x-amz-retry-after maximum is 5+exponential backoff duration": 10 * time.Second,
		// A call that has failed returns.
		"Long-polling backoff after transient error when token bucket empty":  0,
		"Long-polling backoff after throttling error when token bucket empty": 0,
	}
	met := 0
	for _, f := range []struct {
		file, preset string
		cases        int
	}{{"aws_standard_legacy.json", "aws-legacy-standard", 6}, {"aws_standard_v2_1.json", "aws-standard-2.1", 19}} {
		var v struct {
			Cases []struct {
				Name          string
				MaxAttempts   *int
				InitialTokens *int
				MaxBackoff    *float64
				Responses     []awsStep
				Threads       [][]awsStep
				FinalQuota    *int
			}
		}
		vectors(t, "testdata/"+f.file, &v)
		check.Equal(t, len(v.Cases), f.cases, "%s: cases", f.file)
		for _, c := range v.Cases {
			p := find(t, f.preset)
			if c.MaxAttempts != nil {
				p.Policy.Attempts = *c.MaxAttempts
			}
			if c.InitialTokens != nil {
				p.Budget.AWS.Capacity = *c.InitialTokens
			}
			if c.MaxBackoff != nil {
				p.Policy.Backoff.Cap = time.Duration(*c.MaxBackoff * 1e9)
			}
			if c.Threads != nil {
				testAWSThreads(t, p, c.Threads, *c.FinalQuota)
				continue
			}
			a := awsCaller{p: p, d: dependency(t, p)}
			for i, s := range c.Responses {
				outcome, wait := a.play(t, s)
				check.Equal(t, outcome, s.Outcome, "%s, %q, response %d", f.file, c.Name, i)
				if s.Quota != nil && a.quota() != *s.Quota {
					t.Errorf("%s, %q, response %d: quota %d, want %d", f.file, c.Name, i, a.quota(), *s.Quota)
				}
				if s.Delay == nil {
					continue
				}
				want, other := otherwise[c.Name]
				if other {
					met++
				} else {
					want = time.Duration(*s.Delay * 1e9)
				}
				check.Equal(t, wait, want, "%s, %q, response %d: waits", f.file, c.Name, i)
			}
		}
	}
	check.Equal(t, met, len(otherwise), "cases in which the engine differs")
}

// The published case gives the quota after each step in some order of the
// threads: one order must show exactly that, and all must end alike.
func testAWSThreads(t *testing.T, p Preset, threads [][]awsStep, final int) {
	a, b := threads[0], threads[1]
	orders, matching := 0, 0
	for mask := range 1 << (len(a) + len(b)) { // bit set: the first thread's turn
		d := dependency(t, p)
		first, second := awsCaller{p: p, d: d}, awsCaller{p: p, d: d}
		i, j, match := 0, 0, true
		for turn := range len(a) + len(b) {
			var s awsStep
			who := &first
			if mask>>turn&1 == 1 && i < len(a) {
				s, i = a[i], i+1
			} else if mask>>turn&1 == 0 && j < len(b) {
				s, who, j = b[j], &second, j+1
			} else {
				break
			}
			if got, _ := who.play(t, s); got != s.Outcome {
				t.Fatalf("order %b: %s, want %s", mask, got, s.Outcome)
			}
			match = match && first.quota() == *s.Quota
		}
		if i < len(a) || j < len(b) {
			continue // not an order of these threads
		}
		orders++
		if match {
			matching++
		}
		check.Equal(t, first.quota(), final, "order %b: final quota", mask)
	}
	if orders != 10 || matching == 0 {
		t.Errorf("%d orders, %d of them with the published quotas", orders, matching)
	}

	// The same with real threads, many times over.
	for range 200 {
		d := dependency(t, p)
		var wg sync.WaitGroup
		for _, steps := range threads {
			wg.Go(func() {
				c := awsCaller{p: p, d: d}
				for _, s := range steps {
					c.play(t, s)
				}
			})
		}
		wg.Wait()
		if quota := (&awsCaller{d: d}).quota(); quota != final {
			t.Fatalf("at once: final quota %d, want %d", quota, final)
		}
	}
}

type grpcVectors struct {
	EndToEnd struct {
		MaxTokens   int
		TokenRatio  float64
		RetryPolicy struct{ MaxAttempts int }
		OK          []int   `json:"server_ok_at_request_index"`
		Want        [][]any `json:"calls_want"`
	} `json:"end_to_end_grpc_go"`
	Unary struct {
		RetryPolicy struct{ MaxAttempts int }
		Server      struct{ OK, Internal []int }
		Want        [][]any `json:"calls_want"`
	} `json:"end_to_end_retry_unary_grpc_go"`
}

// The scripts of grpc-go's own tests: a server whose answer depends on the number
// of the request, the statuses that callers see, and the last request of each.
func TestGRPCEndToEnd(t *testing.T) {
	var v grpcVectors
	vectors(t, "../../budget/testdata/grpc_throttle.json", &v)
	unavailable := lull.Verdict{Kind: lull.KindTransient, Code: "UNAVAILABLE"}
	internal := lull.Verdict{Kind: lull.KindPermanent, Code: "INTERNAL"}

	rateLimited := find(t, "grpc")
	rateLimited.Policy.Attempts = v.EndToEnd.RetryPolicy.MaxAttempts
	rateLimited.Budget.GRPC = budget.GRPCConfig{MaxTokens: v.EndToEnd.MaxTokens, TokenRatio: v.EndToEnd.TokenRatio}
	unary := find(t, "grpc-no-throttling")
	unary.Policy.Attempts = v.Unary.RetryPolicy.MaxAttempts

	for _, c := range []struct {
		p      Preset
		calls  int
		want   [][]any
		answer func(request int) lull.Verdict
	}{{rateLimited, 12, v.EndToEnd.Want, func(n int) lull.Verdict {
		if slices.Contains(v.EndToEnd.OK, n) {
			return lull.Verdict{Kind: lull.KindSuccess, Code: "OK"}
		}
		return unavailable
	}}, {unary, 7, v.Unary.Want, func(n int) lull.Verdict {
		switch {
		case slices.Contains(v.Unary.Server.OK, n):
			return lull.Verdict{Kind: lull.KindSuccess, Code: "OK"}
		case slices.Contains(v.Unary.Server.Internal, n):
			return internal
		}
		return lull.Verdict{Kind: lull.KindTransient, Code: "ALREADY_EXISTS"}
	}}} {
		check.Equal(t, len(c.want), c.calls, "%s: calls", c.p.Name)
		d := dependency(t, c.p)
		request := -1
		for i, want := range c.want {
			var now time.Duration
			var last lull.Verdict
			call, step := d.State().Start(now, engine.Spec{})
			for !step.Done {
				call.Attempt(now, nil)
				request++
				last = c.answer(request)
				step = call.Next(now, c.p.Reads.Verdict(last), nil)
				now += step.Wait
			}
			if last.Code != want[0] || request != int(want[1].(float64)) {
				t.Errorf("%s, call %d: %s at request %d, want %v at %v", c.p.Name, i, last.Code, request, want[0], want[1])
			}
		}
	}
}

// Envoy's default of three retries at a time, whatever the number of calls, and of waits below 25 ms, doubled up to 250 ms.
func TestEnvoyDefaults(t *testing.T) {
	p := find(t, "envoy")
	check.Equal(t, p.Policy.Backoff, backoff.Schedule{Base: 25 * ms, Cap: 250 * ms}, "backoff")
	d := dependency(t, p)
	var calls [100]engine.Call
	waiting := 0
	for i := range calls {
		calls[i], _ = d.State().Start(0, engine.Spec{})
		calls[i].Attempt(0, nil)
	}
	for i := range calls {
		if step := calls[i].Next(0, transient, nil); !step.Done {
			waiting++
		} else if step.Reason != engine.BudgetExhausted {
			t.Fatalf("ended with %v", step.Reason)
		}
	}
	check.Equal(t, waiting, 3, "retries at a time")
	calls[0].Attempt(25*ms, nil)
	calls[0].Next(25*ms, lull.Verdict{Kind: lull.KindSuccess}, nil)
	if _, why := fail(t, p, d, 25*ms, transient, nil, 0); why != engine.Canceled {
		t.Errorf("a place was given back, and the next retry ended with %v", why)
	}
}

func TestIstioDefault(t *testing.T) {
	var v struct {
		Default struct {
			NumRetries int    `json:"num_retries"`
			RetryOn    string `json:"retry_on"`
		}
		RetryBudget []struct {
			Want struct {
				Percent float64 `json:"budget_percent"`
				Min     int     `json:"min_retry_concurrency"`
			}
		} `json:"retry_budget"`
	}
	vectors(t, "testdata/istio_default.json", &v)
	p := find(t, "istio")
	d := dependency(t, p)
	if waits, why := fail(t, p, d, 0, transient, highest, -1); len(waits) != v.Default.NumRetries || why != engine.AttemptsExhausted {
		t.Errorf("%d retries, then %v; want %d", len(waits), why, v.Default.NumRetries)
	}
	// Nothing in retry_on is about attempts that take too long.
	timeout := lull.Verdict{Kind: lull.KindTransient, Code: engine.CodeTimeout}
	if waits, why := fail(t, p, d, 0, timeout, nil, -1); len(waits) != 0 || why != engine.Permanent {
		t.Errorf("%d retries of a timeout, then %v; retry_on is %s", len(waits), why, v.Default.RetryOn)
	}
	if len(v.RetryBudget) != 1 {
		t.Fatalf("%d retry budgets, want 1", len(v.RetryBudget))
	}
	want := EnvoyConfig{Percent: v.RetryBudget[0].Want.Percent, MinConcurrency: v.RetryBudget[0].Want.Min}
	check.Equal(t, find(t, "envoy-retry-budget").Budget.Envoy, want, "a retry budget")
}
