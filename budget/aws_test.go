package budget

import (
	"sync"
	"testing"
)

type awsStep struct {
	Status      int
	RateLimited bool `json:"throttled"`
	Outcome     string
	Quota       *int
}

type awsVectors struct {
	Cases []struct {
		Group, Name   string
		InitialTokens *int
		Responses     []awsStep
		Threads       [][]awsStep
		FinalQuota    *int
	}
}

// An awsCaller plays the responses that one caller sees. A call ends with
// anything but a retry, and the next response is that of another call.
type awsCaller struct {
	q       *AWSQuota
	begun   bool
	last    Receipt
	retried int
}

func (c *awsCaller) play(s awsStep) (outcome string) {
	if !c.begun {
		c.q.Begin(0)
		c.begun = true
	}
	if c.retried > 0 {
		c.q.Settle(0, c.last)
	}
	end := func(success bool) {
		c.q.End(0, success, c.last)
		*c = awsCaller{q: c.q}
	}
	switch {
	case s.Status == 200:
		end(true)
		return "success"
	case s.Status == 404:
		end(false)
		return "fail_request"
	case s.Outcome == "max_attempts_exceeded": // not for the quota to decide
		c.q.Failed(0)
		end(false)
		return s.Outcome
	}
	class := Transient
	if s.RateLimited {
		class = RateLimited
	}
	c.q.Failed(0)
	g := c.q.Withdraw(0, class, never)
	if !g.OK {
		end(false)
		return "retry_quota_exceeded"
	}
	c.last = g.Receipt
	c.retried++
	return "retry_request"
}

func TestAWSQuotaCases(t *testing.T) {
	for _, f := range []struct {
		file  string
		cfg   AWSConfig
		cases int
	}{{"aws_standard_legacy.json", AWSLegacy(), 6}, {"aws_standard_v2_1.json", AWSStandard21(), 19}} {
		var v awsVectors
		vectors(t, f.file, &v)
		if len(v.Cases) != f.cases {
			t.Errorf("%s: %d cases, want %d", f.file, len(v.Cases), f.cases)
		}
		for _, c := range v.Cases {
			cfg := f.cfg
			if c.InitialTokens != nil {
				cfg.Capacity = *c.InitialTokens
			}
			if c.Threads != nil {
				testAWSThreads(t, c.Name, cfg, c.Threads, *c.FinalQuota)
				continue
			}
			q, err := NewAWSQuota(cfg)
			if err != nil {
				t.Fatal(err)
			}
			caller := awsCaller{q: q}
			for i, s := range c.Responses {
				if got := caller.play(s); got != s.Outcome {
					t.Errorf("%s, %q, response %d: %s, want %s", f.file, c.Name, i, got, s.Outcome)
				}
				if s.Quota != nil && q.Tokens() != *s.Quota {
					t.Errorf("%s, %q, response %d: quota %d, want %d", f.file, c.Name, i, q.Tokens(), *s.Quota)
				}
			}
		}
	}
}

// The published case gives the quota after each step in some order of the
// threads; so one order must show exactly that, and every order ends alike.
func testAWSThreads(t *testing.T, name string, cfg AWSConfig, threads [][]awsStep, final int) {
	a, b := threads[0], threads[1]
	orders, matching := 0, 0
	for mask := range 1 << (len(a) + len(b)) { // bit set: the first thread's turn
		q, _ := NewAWSQuota(cfg)
		first, second := awsCaller{q: q}, awsCaller{q: q}
		i, j, match := 0, 0, true
		for turn := 0; turn < len(a)+len(b); turn++ {
			var s awsStep
			var who *awsCaller
			if mask>>turn&1 == 1 && i < len(a) {
				s, who, i = a[i], &first, i+1
			} else if mask>>turn&1 == 0 && j < len(b) {
				s, who, j = b[j], &second, j+1
			} else {
				break
			}
			if got := who.play(s); got != s.Outcome {
				t.Fatalf("%q, order %b: %s, want %s", name, mask, got, s.Outcome)
			}
			match = match && q.Tokens() == *s.Quota
		}
		if i < len(a) || j < len(b) {
			continue // not an order of these threads
		}
		orders++
		if match {
			matching++
		}
		if q.Tokens() != final {
			t.Errorf("%q, order %b: final quota %d, want %d", name, mask, q.Tokens(), final)
		}
	}
	if orders != 10 || matching == 0 {
		t.Errorf("%q: %d orders, %d of them with the published quotas", name, orders, matching)
	}

	// The same with real threads, many times over.
	q, _ := NewAWSQuota(cfg)
	for range 200 {
		q.tokens.Store(int64(cfg.Capacity))
		var wg sync.WaitGroup
		for _, steps := range threads {
			wg.Go(func() {
				c := awsCaller{q: q}
				for _, s := range steps {
					c.play(s)
				}
			})
		}
		wg.Wait()
		if q.Tokens() != final {
			t.Fatalf("%q: final quota %d, want %d", name, q.Tokens(), final)
		}
	}
}

// In the legacy mode a timeout costs 10; since 2.1 it costs what others do.
func TestAWSCostsByClass(t *testing.T) {
	for _, c := range []struct {
		cfg  AWSConfig
		want map[Class]Receipt
	}{
		{AWSLegacy(), map[Class]Receipt{Transient: 5, Timeout: 10, RateLimited: 5, 9: 5}},
		{AWSStandard21(), map[Class]Receipt{Transient: 14, Timeout: 14, RateLimited: 5, 9: 14}},
	} {
		for class, want := range c.want {
			q, _ := NewAWSQuota(c.cfg)
			if g := q.Withdraw(0, class, never); !g.OK || g.Receipt != want || q.Tokens() != 500-int(want) {
				t.Errorf("%v: %+v leaves %d, want to pay %d", class, g, q.Tokens(), want)
			}
		}
	}
}

func TestAWSNeverExceedsItsCapacity(t *testing.T) {
	q, _ := NewAWSQuota(AWSLegacy())
	q.Withdraw(0, Timeout, never)
	for want := 491; want <= 500; want++ { // full to the last token, one by one
		if q.End(0, true, 0); q.Tokens() != want {
			t.Fatalf("%d tokens, want %d", q.Tokens(), want)
		}
	}
	q, _ = NewAWSQuota(AWSLegacy())
	q.Withdraw(0, Timeout, never)
	q.End(0, true, 0) // a call that needed no retry puts back one
	if q.Tokens() != 491 {
		t.Errorf("%d tokens, want 491", q.Tokens())
	}
	for _, r := range []Receipt{10, 1 << 62, -1 << 63, -5} {
		if q.End(0, true, r); q.Tokens() < 491 || q.Tokens() > 500 {
			t.Errorf("receipt %d: %d tokens", r, q.Tokens())
		}
	}
}
