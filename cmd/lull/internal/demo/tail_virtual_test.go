package demo

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// direct calls a backend without a socket.
type direct struct {
	b *backend
}

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.b.ServeHTTP(w, req)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// unseen is a view that shows nothing.
type unseen struct{}

func (unseen) show(snapshot) {}
func (unseen) end(snapshot)  {}

// runVirtually is runDemo in virtual time. It is quick, and does not depend on how busy the
// machine is.
func runVirtually(t *testing.T, args ...string) (r result, of map[string]tailFigures) {
	t.Helper()
	s := parse(t, append([]string{"--scenario=tail"}, args...)...)
	of = map[string]tailFigures{}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() time.Duration { return time.Since(start) }
		var lanes []*lane
		for _, c := range s.Clients {
			l := &lane{name: c.name, backend: newBackend(s, clock), clock: clock}
			l.backend.url = "http://backend.test/"
			if err := l.connect(s, c, direct{l.backend}); err != nil {
				t.Fatal(err)
			}
			lanes = append(lanes, l)
		}
		r = runLanes(t.Context(), s, unseen{}, lanes, clock)
		for _, l := range lanes {
			l.close()
		}
	})
	for _, f := range r.hedgers {
		of[f.Name] = f
	}
	return r, of
}

// The default run shows what the scenario is for.
func TestTailShowsWhatItPromises(t *testing.T) {
	r, of := runVirtually(t)
	none, naive, lull := of["no hedging"], of["naive"], of["lull"]
	check := func(ok bool, what string) {
		t.Helper()
		if !ok {
			_ = printTable(t.Output(), r)
			t.Fatal(what)
		}
	}
	if r.unfinished != 0 || r.dialErrors != 0 || r.measured != r.setting.Duration {
		t.Errorf("%d unfinished, %d troubles, %v measured", r.unfinished, r.dialErrors, r.measured)
	}
	// Both hedgers cut the tail for a few per cent more requests.
	check(timeOr(none.After.P99) >= 350, "the tail of calls without hedges is not slow")
	check(timeOr(naive.Before.P99) <= 40 && timeOr(lull.Before.P99) <= 40, "hedges do not cut the tail")
	check(none.Whole.AttemptsPerCall == 1 && none.Whole.WorstSecond == 0, "who does not hedge has sent more than one request for a call")
	check(naive.Before.AttemptsPerCall <= 1.06 && lull.Before.AttemptsPerCall <= 1.08, "hedges are more than a few per cent")
	// A slow backend can serve the calls, but not twice as many requests.
	check(none.Slow.FailureRate == 0, "the backend does not bear the calls")
	check(naive.Slow.FailureRate >= 0.15 && naive.Slow.WorstSecond >= 0.9 && naive.Stopped == nil, "the naive hedger does no harm")
	check(timeOr(naive.Slow.P50) >= 1.3*timeOr(lull.Slow.P50), "the naive hedger does not slow down those calls that succeed")
	// lull stops within a second, and its extra load stays under a tenth of the calls.
	check(lull.Slow.FailureRate == 0, "calls of lull fail")
	check(lull.Slow.WorstSecond <= 0.13 && lull.Slow.AttemptsPerCall <= 1.1, "lull hedges while everything is slow")
	check(lull.Stopped != nil && *lull.Stopped <= 1000, "lull does not stop within a second")
	check(lull.Slow.HeldBack >= 100, "it is not said that lull held hedges back")
	check(none.Slow.HeldBack+naive.Slow.HeldBack == 0, "others hold hedges back")
	// The price: lull must learn the percentile again.
	check(lull.CutAgain != nil && *lull.CutAgain >= 1000 && *lull.CutAgain <= 11_000, "lull does not cut the tail again")
	for _, f := range r.hedgers {
		sent := f.Whole.AttemptsPerCall * float64(f.Whole.Calls)
		if seen := float64(f.Attempts); seen > sent+1 || seen < 0.99*sent {
			t.Errorf("%s sent %.0f requests, its backend saw %.0f", f.Name, sent, seen)
		}
	}
}

// The statements of the help about other settings are true.
func TestTailWhereOthersDoAsWell(t *testing.T) {
	_, of := runVirtually(t, "--load=0.4")
	if f := of["naive"].Slow; f.FailureRate > 0.01 || f.AttemptsPerCall < 1.9 {
		t.Errorf("--load 0.4: %.1f%% of the calls fail with naive hedges, at %.2f requests a call; want none, at 2",
			100*f.FailureRate, f.AttemptsPerCall)
	}
	_, of = runVirtually(t, "--tail=0.08", "--outage=0s", "--duration=8s", "--capacity=1000", "--clients=naive,lull")
	if naive, lull := timeOr(of["naive"].Whole.P99), timeOr(of["lull"].Whole.P99); naive > 50 || lull < 350 {
		t.Errorf("--tail 0.08: p99 is %.0f ms with naive hedges, %.0f with those of lull; want the first to be quick", naive, lull)
	}
	if f := of["lull"]; f.Before != nil || f.Slow != nil || f.After != nil || f.Stopped != nil || f.CutAgain != nil {
		t.Errorf("without a slow time: %+v", f)
	}
}
