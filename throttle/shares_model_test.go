package throttle

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// slowShares is the rule as its comment states it, over a list of all requests.
type slowShares struct {
	cfg      Config // without zeros, but for those of another mode
	requests []request
	probe    time.Duration
}

type request struct {
	at       time.Duration
	accepted bool
}

// in counts the requests of the last n slots.
func (s *slowShares) in(now time.Duration, n int64) (requests, accepts float64) {
	width := s.cfg.Window / 30
	for _, r := range s.requests {
		if age := int64(now/width) - int64(r.at/width); age >= 0 && age < n {
			requests++
			if r.accepted {
				accepts++
			}
		}
	}
	return requests, accepts
}

func (s *slowShares) refusal(now time.Duration) float64 {
	width := s.cfg.Window / 30
	recent := int64(1)
	for time.Duration(recent)*width < s.cfg.Recent && recent < 30 {
		recent++
	}
	p := 1.0
	for _, n := range []int64{30, recent} {
		requests, accepts := s.in(now, n)
		if n == 30 && requests < float64(s.cfg.MinRequests) {
			return 0
		}
		p = min(p, max(0, (requests-s.cfg.K*accepts)/(requests+1)))
	}
	return p
}

func (s *slowShares) ask(now time.Duration, luck uint64) bool {
	p := s.refusal(now)
	if p == 0 {
		return true
	}
	if float64(luck>>11)/(1<<53) >= p || s.cfg.ProbeEvery >= 0 && now >= s.probe {
		s.probe = now + s.cfg.ProbeEvery
		return true
	}
	s.requests = append(s.requests, request{now, false})
	return false
}

// The throttle must decide as the slow one does, every time, whatever the calls.
// That is also what its short cut, not to count while nothing is to be refused,
// must not change.
func TestSharesAgreeWithTheSlowOnes(t *testing.T) {
	refused, passed, spared, runs := 0, 0, 0, seed.Runs(60)
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 4))
		cfg := Config{
			Mode:        Adaptive,
			Window:      []time.Duration{30 * sec, 2 * time.Minute, time.Second + 7}[r.IntN(3)],
			K:           []float64{1.1, 1.5, 2, 3}[r.IntN(4)],
			MinRequests: 1 + r.IntN(12),
			ProbeEvery:  -1,
		}
		cfg.Recent = 1 + time.Duration(r.Int64N(int64(cfg.Window)))
		if r.IntN(2) == 0 {
			cfg.Recent = cfg.Window / 12
		}
		if r.IntN(2) == 0 {
			cfg.ProbeEvery = 1 + time.Duration(r.Int64N(int64(cfg.Window)))
		}
		th := must.Have(New(cfg))
		slow := slowShares{cfg: cfg}
		now := time.Duration(0)
		bad := r.Float64() // how much of what is sent goes unaccepted
		for step := range 600 {
			switch r.IntN(40) {
			case 0:
				bad = r.Float64() * float64(r.IntN(2))
			case 1:
				now += time.Duration(r.Int64N(int64(cfg.Window) * 2))
			default:
				now += time.Duration(r.Int64N(int64(cfg.Window) / 100))
			}
			luck := r.Uint64()
			if r.IntN(3) > 0 {
				_, got := th.Start(now, func() uint64 { return luck })
				want := slow.ask(now, luck)
				if got != want {
					t.Fatalf("seed %d, step %d, %+v: at %v passed %t, want %t", seed, step, cfg, now, got, want)
				}
				if !got {
					refused++
					continue
				}
				passed++
				if int64(now) < th.shares.Load().readCalm() {
					spared++
				}
			}
			o := Accepted
			if r.Float64() < bad {
				o = []Evidence{RateLimited, Unanswered, Neutral, Unsent}[r.IntN(4)]
			}
			th.Done(now, o)
			if o <= Unanswered {
				slow.requests = append(slow.requests, request{now, o == Accepted})
			}
			requests, accepts := slow.in(now, 30)
			want := Snapshot{Requests: int64(requests), Accepts: int64(accepts), Refusal: slow.refusal(now)}
			if got := th.State(now); got != want {
				t.Fatalf("seed %d, step %d, %+v: at %v %+v, want %+v", seed, step, cfg, now, got, want)
			}
			if len(slow.requests) > 400 {
				slow.requests = slices.DeleteFunc(slow.requests, func(r request) bool { return now-r.at > cfg.Window })
			}
		}
	}
	if refused < 20*runs || passed < 20*runs || spared < 7*runs {
		t.Errorf("the model was hardly put to the test: %d refused, %d passed, %d without counting", refused, passed, spared)
	}
}

// readCalm is the end of the time in which nothing is counted, if there is one.
func (s *shares) readCalm() int64 {
	if s == nil || s.credit.Load() <= 0 {
		return 0
	}
	return s.acceptUntil.Load()
}
