package serviceconfig_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/serviceconfig"
)

func ExampleParse() {
	c, err := serviceconfig.Parse([]byte(`{"methodConfig": [{
	  "name": [{"service": "shop.Orders"}],
	  "timeout": "2s",
	  "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
	                  "retryableStatusCodes": ["UNAVAILABLE"]}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, lost := c.Methods[0].Policy(lull.Policy{}, serviceconfig.Reading{PolicyOnly: true})
	fmt.Println(p.Attempts, p.Deadline, p.Backoff.Ceiling(1), p.Backoff.Ceiling(9))
	for _, l := range lost {
		fmt.Println(l)
	}
	// Output:
	// 4 2s 100ms 1s
	// retryPolicy.retryableStatusCodes: a policy has no list of codes: lull also retries RESOURCE_EXHAUSTED (lullgrpc.WithServiceConfig takes the list, in code)
}

func ExampleParse_mistakes() {
	_, err := serviceconfig.Parse([]byte(`{"methodConfig": [{"name": [{}],
	  "retryPolicy": {"maxAttempts": 1, "initialBackoff": "100ms", "maxBackoff": "1s", "backoffMultiplier": 2}}]}`))
	fmt.Println(err)
	// Output:
	// line 2: methodConfig[0].retryPolicy.retryableStatusCodes is missing: want a list of status codes that is not empty, such as ["UNAVAILABLE"]
	// line 2: methodConfig[0].retryPolicy.maxAttempts is 1: want a whole number from 2
	// line 2: methodConfig[0].retryPolicy.initialBackoff is "100ms": want a positive duration in seconds such as "0.25s", with up to nine decimals; did you mean 0.1s?
}

func ExampleOf() {
	p := lull.Policy{
		Attempts: 3, AttemptTimeout: lull.NoTimeout, Deadline: 2 * time.Second,
		Backoff: backoff.Schedule{Jitter: backoff.Proportional, Cap: 1200 * time.Millisecond},
		Budget:  budget.Config{Unlimited: true},
	}
	c, lost, err := serviceconfig.Of(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := json.Marshal(c)
	fmt.Println(string(text))
	for _, l := range lost {
		fmt.Println(l.Field)
	}
	// Output:
	// {"methodConfig":[{"name":[{}],"timeout":"2s","retryPolicy":{"maxAttempts":3,"initialBackoff":"0.1s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}
	// RateLimitedBase
	// Timeouts
	// HintLimit
	// Nested
	// Breaker
}

func ExampleBudget() {
	b, lost := serviceconfig.Budget(budget.GRPCConfig{MaxTokens: 10, TokenRatio: 0.1})
	fmt.Println(b.Stock, b.Ratio, len(lost))
	// Output: 4 0.1 1
}
