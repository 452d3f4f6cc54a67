package demo

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// fifteenSeconds is a run of the scenario tail that is slow from 5 s to 8 s.
func fifteenSeconds() setting {
	return setting{
		Scenario: tail, Duration: 15 * time.Second, Load: 0.5, Capacity: 100, Queue: 50, OutageAt: 5 * time.Second,
		Outage: 3 * time.Second, Timeout: 2 * time.Second, Attempts: 2, Seed: 1, Clients: tailClients,
		Tail: 0.02, HedgeDelay: 20 * ms,
	}
}

// callsOf returns so many calls that succeeded within 1, 2, 3 ... ms, and so many that failed.
func callsOf(good, failed int) []callRecord {
	var calls []callRecord
	for i := range good {
		calls = append(calls, callRecord{took: time.Duration(good-i) * ms, ok: true, sent: 1})
	}
	for range failed {
		calls = append(calls, callRecord{took: 0, sent: 1}) // at once
	}
	return calls
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		good, failed, permille int
		want                   time.Duration
	}{
		{1000, 0, 500, 500 * ms}, {1000, 0, 990, 990 * ms}, {1000, 0, 999, 999 * ms}, {1, 0, 1, ms}, {3, 0, 500, 2 * ms},
		// A failure counts as one that takes for ever, even if it was quick.
		{990, 10, 990, 990 * ms}, {989, 11, 990, never}, {989, 11, 500, 500 * ms}, {500, 500, 500, 500 * ms}, {499, 501, 500, never},
		{0, 1, 1, never}, {0, 0, 500, never},
	} {
		check.Equal(t, successPercentile(callsOf(c.good, c.failed), c.permille), c.want, "%d succeed, %d fail: %d of a thousand within", c.good, c.failed, c.permille)
	}
}

// countsOf counts perTick calls in each tick of a time, and extra requests.
func countsOf(length time.Duration, perTick int, extras func(at time.Duration) int) (n counts) {
	for at := time.Duration(0); at < length; at += tick {
		n[begun] = append(n[begun], perTick)
		n[extra] = append(n[extra], extras(at))
		n[held] = append(n[held], 0)
	}
	return n
}

func TestWorstSecond(t *testing.T) {
	// 2 in each tick between 2.5 and 3 s: 10 in the seconds that contain all of them.
	n := countsOf(10*time.Second, 10, func(at time.Duration) int {
		if at >= 2500*ms && at < 3*time.Second {
			return 2
		}
		return 0
	})
	for _, c := range []struct {
		from, to time.Duration
		want     float64
	}{
		{0, 10 * time.Second, 0.1}, {2 * time.Second, 3 * time.Second, 0.1}, {3 * time.Second, 10 * time.Second, 0},
		{0, 2500 * ms, 0}, {2700 * ms, 10 * time.Second, 0.06}, {2750 * ms, 10 * time.Second, 0.04},
		{2500 * ms, 3 * time.Second, 0.2}, // less than a second
		{4 * time.Second, 4 * time.Second, 0}, {5 * time.Second, 4 * time.Second, 0}, {time.Minute, time.Hour, 0},
	} {
		check.Equal(t, worstSecond(n, c.from, c.to), c.want, "from %v to %v", c.from, c.to)
	}
}

func TestStopped(t *testing.T) {
	s := fifteenSeconds()
	for _, c := range []struct {
		name  string
		extra func(at time.Duration) bool
		end   time.Duration
		want  time.Duration
	}{
		{"none", func(time.Duration) bool { return false }, s.Duration, 0},
		{"all the time", func(time.Duration) bool { return true }, s.Duration, never},
		{"for a while", func(at time.Duration) bool { return at < 5700*ms }, s.Duration, 700 * ms},
		{"until the last second", func(at time.Duration) bool { return at < 7*time.Second }, s.Duration, 2 * time.Second},
		{"until later", func(at time.Duration) bool { return at < 7100*ms }, s.Duration, never},
		{"with a pause", func(at time.Duration) bool { return at < 6*time.Second || at == 7*time.Second }, s.Duration, time.Second},
		{"with one that is too short", func(at time.Duration) bool { return at < 6*time.Second || at == 6900*ms || at == 7500*ms }, s.Duration, never},
		{"the run ended", func(at time.Duration) bool { return at < 6*time.Second }, 6900 * ms, never},
	} {
		n := countsOf(s.Duration, 5, func(at time.Duration) int {
			if c.extra(at) {
				return 1
			}
			return 0
		})
		check.Equal(t, stopTime(s, c.end, n), c.want, "%s: stopped after", c.name)
	}
}

func TestCutAgain(t *testing.T) {
	s := fifteenSeconds()
	for _, c := range []struct {
		name string
		slow func(call int, at time.Duration) bool // of ten calls in a tick
		end  time.Duration
		want time.Duration
	}{
		{"no tail", func(int, time.Duration) bool { return false }, s.Duration, 0},
		{"only while slow", func(_ int, at time.Duration) bool { return at >= s.OutageAt && at < s.outageEnd() }, s.Duration, 0},
		// Of 300 calls three may be slow, but not four.
		{"for a while", func(i int, at time.Duration) bool { return i == 0 && at < 9*time.Second }, s.Duration, 700 * ms},
		{"to the end", func(i int, at time.Duration) bool { return i == 0 }, s.Duration, never},
		{"a hundredth", func(i int, at time.Duration) bool { return i == 0 && at%time.Second == 0 }, s.Duration, 0},
		{"relapse", func(i int, at time.Duration) bool { return i < 4 && at == 11*time.Second }, s.Duration, 3100 * ms},
		{"nothing seen", func(int, time.Duration) bool { return false }, 10900 * ms, never},
		{"just enough seen", func(int, time.Duration) bool { return false }, 11 * time.Second, 0},
	} {
		for _, failed := range []bool{false, true} {
			var calls []callRecord
			for at := time.Duration(0); at < c.end; at += tick {
				for i := range 10 {
					r := callRecord{start: at, took: 10 * ms, ok: true}
					switch {
					case c.slow(i, at) && failed:
						r.ok = false
					case c.slow(i, at):
						r.took = 350 * ms
					}
					calls = append(calls, r)
				}
			}
			check.Equal(t, tailCutTime(s, c.end, calls), c.want, "%s (failed %v): cut again after", c.name, failed)
		}
	}
	if tailCutTime(s, s.Duration, nil) != never {
		t.Error("cut without calls")
	}
}

func TestMeasureTail(t *testing.T) {
	s := fifteenSeconds()
	var ended []callRecord
	n := countsOf(s.Duration, 1, func(at time.Duration) int {
		if at >= s.OutageAt && at < s.outageEnd() {
			return 1
		}
		return 0
	})
	for at := time.Duration(0); at < s.Duration; at += tick {
		c := callRecord{start: at, took: 10 * ms, ok: true, sent: 1}
		if at >= s.OutageAt && at < s.outageEnd() {
			c.took, c.sent, c.ok = 500*ms, 2, at/tick%2 == 0
		}
		ended = append(ended, c)
	}
	n[held][60], n[seen] = 7, []int{180}
	f := measureTail(s, s.Duration, "x", ended, n)
	if f.Name != "x" || f.Calls != 150 || f.Attempts != 180 || f.Stopped != never || f.CutAgain != 0 {
		t.Errorf("got %+v", f)
	}
	// Those from 4.35 s to 5 s are in no part except the whole.
	for _, c := range []struct {
		name string
		got  *periodFigures
		want string
	}{
		{"before", f.Before, "44 calls: 10 10 10 ms, 1 requests, 0 worst, 0 held back, 0 failed"},
		{"slow", f.Slow, "30 calls: 500 never never ms, 2 requests, 1 worst, 7 held back, 0.5 failed"},
		{"after", f.After, "70 calls: 10 10 10 ms, 1 requests, 0 worst, 0 held back, 0 failed"},
		{"whole", f.Whole, "150 calls: 10 never never ms, 1.2 requests, 1 worst, 7 held back, 0.1 failed"},
	} {
		check.Equal(t, c.got.words(), c.want, "%s", c.name)
	}
	if f := measureTail(s, 14*time.Second, "x", ended, n); f.Whole.Calls != 150 || f.After.Calls != 70 {
		t.Errorf("calls that began late are missing: %+v", f.Whole)
	}
	n = counts{begun: n[begun][:60], extra: n[extra][:60], held: n[held][:60]}
	f = measureTail(s, 6*time.Second, "x", ended[:60], n)
	if f.After != nil || f.Slow == nil || f.Slow.Calls != 10 || f.CutAgain != never {
		t.Errorf("a run that ended while all was slow: %+v", f)
	}
	check.Equal(t, measureTail(s, 0, "x", nil, counts{}), (tailFigures{Name: "x", Stopped: never, CutAgain: never}), "a run of nothing")
	s.Outage = 0
	if f := measureTail(s, s.Duration, "x", ended, n); f.Before != nil || f.Slow != nil || f.After != nil || f.Whole == nil || f.CutAgain != never {
		t.Errorf("a run that was slow at no time: %+v", f)
	}
}

func TestRecentTimes(t *testing.T) {
	// Ten calls a tick that take 10 ms, and from 4 s on 50; one that fails at 2 s.
	l := &lane{}
	for at := time.Duration(0); at < 8*time.Second; at += tick {
		took := 10 * ms
		if at >= 4*time.Second {
			took = 50 * ms
		}
		for range 10 {
			l.ended = append(l.ended, callRecord{start: at, took: took, ok: true})
		}
		if at == 2*time.Second {
			for range 4 {
				l.ended = append(l.ended, callRecord{start: at, took: 5 * ms})
			}
		}
	}
	check.Equal(t, len(l.recentUntil(400*ms)), 0, "recents after 0.4 s")
	first := l.recentUntil(3 * time.Second) // those that ended later are not looked at
	check.Slices(t, first, []recent{{10 * ms, 10 * ms}, {10 * ms, 10 * ms}, {10 * ms, 10 * ms}, {10 * ms, 10 * ms}, {10 * ms, never}, {10 * ms, never}}, "after 3 s")
	all := l.recentUntil(10 * time.Second)
	if !slices.Equal(all[:6], first) || len(all) != 20 {
		t.Fatalf("%d after 10 s, the first being %v", len(all), all[:6])
	}
	for i, want := range map[int]recent{
		7: {10 * ms, never}, 8: {10 * ms, never}, // 4.5 s: half of the last second; 1.5 s are not 3 yet
		9: {50 * ms, never}, 10: {50 * ms, 50 * ms}, 17: {never, 50 * ms}, 19: {never, 50 * ms},
	} {
		check.Equal(t, all[i], want, "after %v", time.Duration(i+1)*recentStep)
	}
	shot := laneSnapshot{recents: all[:4]}
	for at, want := range map[time.Duration]int{500 * ms: 0, 999 * ms: 0, time.Second: 1, 2 * time.Second: 3, time.Hour: 3} {
		if got, ok := shot.recentBy(at); !ok || got != all[want] {
			t.Errorf("by %v: %v, %v; want %v", at, got, ok, all[want])
		}
	}
	if _, ok := shot.recentBy(400 * ms); ok {
		t.Error("something is known after 0.4 s")
	}
}

func TestTallyCountsRequestsOfACall(t *testing.T) {
	l := &lane{backend: &backend{}, clock: func() time.Duration { return 150 * ms }}
	a, b := &requestTally{lane: l}, &requestTally{lane: l}
	a.countSent()
	b.countSent()
	check.Equal(t, total(l.backend.counts.copy()[extra]), 0, "two first requests: extra")
	a.countSent()
	a.countSent()
	a.countHeld()
	if got := l.backend.counts.copy(); len(got[extra]) != 2 || got[extra][1] != 2 || a.sent.Load() != 3 || b.sent.Load() != 1 || total(got[held]) != 1 {
		t.Errorf("%v, %d and %d sent; want 2 extra in the second tick, 3 and 1 sent", got, a.sent.Load(), b.sent.Load())
	}
	check.Equal(t, tallyOf(t.Context()), nil, "a tally out of nowhere")
}

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
			must.Succeed(l.connect(s, c, direct{l.backend}))
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
	check(none.After.P99 >= 350*ms, "the tail of calls without hedges is not slow")
	check(naive.Before.P99 <= 40*ms && lull.Before.P99 <= 40*ms, "hedges do not cut the tail")
	check(none.Whole.AttemptsPerCall == 1 && none.Whole.WorstSecond == 0, "who does not hedge has sent more than one request for a call")
	check(naive.Before.AttemptsPerCall <= 1.06 && lull.Before.AttemptsPerCall <= 1.08, "hedges are more than a few per cent")
	// A slow backend can serve the calls, but not twice as many requests.
	check(none.Slow.FailureRate == 0, "the backend does not bear the calls")
	check(naive.Slow.FailureRate >= 0.15 && naive.Slow.WorstSecond >= 0.9 && naive.Stopped == never, "the naive hedger does no harm")
	check(float64(naive.Slow.P50) >= 1.3*float64(lull.Slow.P50), "the naive hedger does not slow down those calls that succeed")
	// lull stops within a second, and its extra load stays under a tenth of the calls.
	check(lull.Slow.FailureRate == 0, "calls of lull fail")
	check(lull.Slow.WorstSecond <= 0.13 && lull.Slow.AttemptsPerCall <= 1.1, "lull hedges while everything is slow")
	check(lull.Stopped <= time.Second, "lull does not stop within a second")
	check(lull.Slow.HeldBack >= 100, "it is not said that lull held hedges back")
	check(none.Slow.HeldBack+naive.Slow.HeldBack == 0, "others hold hedges back")
	// The price: lull must learn the percentile again.
	check(lull.CutAgain >= time.Second && lull.CutAgain <= 11*time.Second, "lull does not cut the tail again")
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
	if naive, lull := of["naive"].Whole.P99, of["lull"].Whole.P99; naive > 50*ms || lull < 350*ms {
		t.Errorf("--tail 0.08: p99 is %v with naive hedges, %v with those of lull; want the first to be quick", naive, lull)
	}
	if f := of["lull"]; f.Before != nil || f.Slow != nil || f.After != nil || f.Stopped != never || f.CutAgain != never {
		t.Errorf("without a slow time: %+v", f)
	}
}
