package preset

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
)

// InternalService is for a service within one data centre: short waits, and a concurrency
// limit. WorstCase: 3 s.
func InternalService() lull.Policy {
	return lull.Policy{
		Attempts:       2,
		AttemptTimeout: time.Second,
		Deadline:       3 * time.Second,
		Backoff:        backoff.Schedule{Base: 25 * time.Millisecond, Cap: time.Second},
		HintLimit:      2 * time.Second,
		Limit:          bulkhead.Config{InFlight: 256},
	}
}

// ExternalAPI is for somebody else's API over the internet: patience with rate limits. Such
// calls are few, so a timeout is repeated although no other call was answered. Only three
// retries are in stock, since others pay for that service. WorstCase: 1 minute.
func ExternalAPI() lull.Policy {
	return lull.Policy{
		Attempts:       4,
		AttemptTimeout: 15 * time.Second,
		Deadline:       time.Minute,
		Backoff:        backoff.Schedule{Base: 250 * time.Millisecond, Cap: 20 * time.Second},
		HintLimit:      45 * time.Second,
		Timeouts:       lull.TimeoutsAlways,
		Budget:         budget.Config{Stock: 3},
	}
}

// BackgroundWorker is for work that nobody waits for, within ten minutes. Timeouts are
// repeated: for a handful of processes, not for a fleet. WorstCase: 10 minutes.
func BackgroundWorker() lull.Policy {
	return lull.Policy{
		Attempts:       8,
		AttemptTimeout: 30 * time.Second,
		Deadline:       10 * time.Minute,
		Backoff:        backoff.Schedule{Base: time.Second, Cap: time.Minute},
		HintLimit:      5 * time.Minute,
		Timeouts:       lull.TimeoutsAlways,
	}
}

// CommandLine is for programs that make a few calls one after the other, and end:
// command-line tools, scripts, jobs. WorstCase: 1 minute.
//
// Such a program has no other calls to learn from. So a timeout is repeated. If nothing works,
// its calls together make as many retries as are in stock, 20.
// For a fleet of a thousand that start together (a cron job) use the zero policy with
// budget.Config{Stock: 2}.
// docs/which-policy.md has the argument and the figures.
func CommandLine() lull.Policy {
	return lull.Policy{
		Attempts: 6,
		Deadline: time.Minute,
		Timeouts: lull.TimeoutsAlways,
		Backoff:  backoff.Schedule{Base: 200 * time.Millisecond, Cap: 10 * time.Second},
	}
}

// Edge is for clients at the edge: browsers, phones, devices. WorstCase: 12 s.
//
// They are many, each makes few calls, and they fail together. So there is one retry in
// stock, the wait is drawn from up to 2 s, and a timeout is not repeated. If a server asks
// to wait for more than 10 s, the call ends, and Error.Verdict.After has the time to show.
// docs/which-policy.md has the argument and an outage.
func Edge() lull.Policy {
	return lull.Policy{
		Attempts:       2,
		AttemptTimeout: 6 * time.Second,
		Deadline:       12 * time.Second,
		Backoff:        backoff.Schedule{Base: 2 * time.Second, Cap: 4 * time.Second},
		HintLimit:      10 * time.Second,
		Budget:         budget.Config{Stock: 1},
	}
}

// PerKey is for a lull.Registry with a dependency for each thing that is asked for, such as a
// segment of a live stream. In 30 s there is at most one retry for a key, whoever asks, and one
// more for 100,000 calls that succeed. WorstCase: 17 s.
//
// The wait is 1 to 5 s, or what the server asks for with jitter on top: all players fail together,
// and have some seconds of video left. The registry must hold the keys of half a minute: one that
// has left it comes back with a new budget. If many callers share a process, let them wait for the
// same call, since only one of them gets the retry.
// For lullhttp pass lullhttp.WithDependencies a function that returns the registry's dependency for
// the key in the request. lab/study/README.md has 25 million players.
func PerKey() lull.Policy {
	const every = 30 * time.Second
	return lull.Policy{
		Attempts:       2,
		AttemptTimeout: 6 * time.Second,
		Deadline:       17 * time.Second,
		Backoff:        backoff.Schedule{Kind: backoff.Constant, Floor: time.Second, Base: 5 * time.Second},
		HintLimit:      10 * time.Second,
		Budget: budget.Config{
			Window: every * 10 / 9, // what was spent counts for nine tenths of it at least
			Floor:  0.9 / every.Seconds(),
			Ratio:  budget.MinRatio,
		},
	}
}

// LLM is for APIs of large language models: a slow first byte (a p95 of 50 s), rate limits for which
// the server names a time of up to a minute (429, 529, 503), and attempts that cost money.
// WorstCase: 5 minutes.
//
// A quota that is full again only in more than two minutes ends the call, with that time in
// Error.Verdict.After. Such a call is a POST: declare it idempotent, if being charged twice does no
// harm (lullhttp.WithRoute). An error in a stream that has begun is left to the caller.
func LLM() lull.Policy {
	return lull.Policy{
		Attempts:       3,
		AttemptTimeout: 2 * time.Minute,
		Deadline:       5 * time.Minute,
		Backoff:        backoff.Schedule{Base: time.Second, Cap: 30 * time.Second},
		HintLimit:      2 * time.Minute,
		Budget:         budget.Config{Stock: 3},
	}
}
