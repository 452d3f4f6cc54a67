package rivals

import (
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/throttle"
)

// awsPolicy is three attempts with full jitter below min(base × 2^i, 20 s), and
// below the same from another base after a rate-limited failure.
func awsPolicy(base, rateLimited time.Duration) lull.Policy {
	p := attemptsAndWaits(3, backoff.Schedule{Base: base, Cap: 20 * second})
	p.RateLimitedBase = rateLimited
	return p
}

func aws() []Preset {
	const kotlin = "smithy-lang/smithy-kotlin@6373a5f7, StandardRetryIntegrationTestResources.kt"
	return []Preset{{
		Name: "aws-legacy-standard", Title: "AWS SDKs, standard mode up to 2.0: 3 attempts, full jitter from 1 s, quota 500/5/10/1",
		Source: "boto/botocore@0e6e2404, retries/standard.py and quota.py; cases: " + kotlin,
		Note:   "The quota has no clock: what an outage has spent comes back one token for each call that succeeds without a retry.",
		Policy: awsPolicy(second, second), Budget: Budget{AWS: awsLegacyQuota()}, Reads: Reads{Timeouts: true, RateLimits: true},
	}, {
		Name: "aws-adaptive", Title: "AWS SDKs, adaptive mode: aws-legacy-standard, and a rate for all attempts after a rate-limited answer",
		Source: "boto/botocore@0e6e2404, retries/adaptive.py, throttling.py and bucket.py",
		Note:   "The SDKs hold one rate for each client, whatever it calls: calls that are not rate-limited wait with those that are. They also wait for as long as it takes; so does the preset.",
		Policy: awsAdaptive(), Budget: Budget{AWS: awsLegacyQuota()}, Reads: Reads{Timeouts: true, RateLimits: true},
	}, {
		Name: "aws-go-v2", Title: "AWS SDK for Go v2, standard mode: as aws-legacy-standard, but full jitter from 2 s",
		Source: "aws/aws-sdk-go-v2 v1.47.6, aws/retry/standard.go and jitter_backoff.go",
		Note:   "The exponent counts from 1 there. With more than five attempts the SDK waits exactly 20 s, without jitter; the preset keeps the jitter.",
		Policy: awsPolicy(2*second, 2*second), Budget: Budget{AWS: awsLegacyQuota()}, Reads: Reads{Timeouts: true, RateLimits: true},
	}, {
		Name: "aws-standard-2.1", Title: "AWS retry behavior 2.1 (2026): 3 attempts, full jitter from 50 ms or 1 s when rate-limited, quota 500/14/5/1",
		Source: "boto/botocore@0e6e2404, retries; opt-in with AWS_NEW_RETRIES_2026; cases: smithy-lang/smithy-kotlin@6373a5f7, NewStandardRetryIntegrationTestResources.kt",
		Note: "The SDKs bring the server's x-amz-retry-after into [t, t + 5 s], t being the wait that was drawn; the engine waits for as long as was asked, and spreads it upwards. " +
			"Long polls that find the quota empty wait before they fail; the engine fails at once. DynamoDB has 4 attempts from 25 ms.",
		Policy: awsPolicy(50*ms, second), Budget: Budget{AWS: awsQuota21()}, Reads: Reads{Timeouts: true, RetryAfter: true, RateLimits: true},
	}}
}

func awsAdaptive() lull.Policy {
	p := awsPolicy(second, second)
	p.Throttle = throttle.Config{Mode: throttle.Cubic, MaxWait: math.MaxInt64}
	return p
}
