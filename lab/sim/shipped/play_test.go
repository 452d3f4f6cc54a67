package shipped

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/lab/sim"
	"github.com/lullgo/lull/lullhttp"
)

// play is sim.Run with real clients: the fleet calls the service over a wire, on the clock of package time. It knows one fleet, one service, and of these what the cases need;
// a scenario that asks for more is refused.
func play(ctx context.Context, w wire, s sim.Scenario, c sim.Contender, seed uint64) flight {
	if err := plays(s, c); err != nil {
		return flight{err: err}
	}
	fleet := &s.Fleets[0]
	moments := arrivals(&fleet.Arrivals, s.Horizon, seed)
	start := time.Now()                                        //clock: in a bubble; on sockets only with the tag servers
	clock := func() time.Duration { return time.Since(start) } //clock: see start
	listener, dial, err := w()
	if err != nil {
		return flight{err: err}
	}
	server := serve(listener, &s.Services[0], clock, seed)
	defer server.close()
	base := &http.Transport{MaxIdleConnsPerHost: 1000, DialContext: dial}
	defer base.CloseIdleConnections()
	log := newTally(&s, clock)
	clients, err := processes(fleet, c, &counting{base, log})
	if err != nil {
		return flight{err: err}
	}

	var calls sync.WaitGroup
	var late time.Duration
	which := rand.New(rand.NewPCG(seed, 2))
	for n, at := range moments {
		time.Sleep(at - clock()) //clock: see start
		late = max(late, clock()-at)
		client := clients[n%len(clients)]
		if fleet.Arrivals.Kind == sim.Poisson {
			client = clients[which.IntN(len(clients))]
		}
		calls.Go(func() { log.call(ctx, client, server.url, fleet.Deadline) })
	}
	calls.Wait()
	r := log.result()
	r.Contender, r.Seed = c.Name, seed
	return flight{r, log.made, late, log.failed()}
}

// plays returns an error for a scenario with something that play does not have.
func plays(s sim.Scenario, c sim.Contender) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if len(s.Services) != 1 || len(s.Fleets) != 1 || c.Verdict != nil {
		return errors.New("play knows one service, one fleet, and no Contender.Verdict")
	}
	// What is left when all that it knows is taken away has to be nothing.
	v, f := s.Services[0], s.Fleets[0]
	for _, fault := range v.Faults {
		if fault.Kind == sim.Errors || fault.Kind == sim.Stall {
			fault.Share, fault.RetryAfter, fault.DontRetry, fault.After = 0, 0, false, 0
			fault.Kind, fault.At, fault.For = 0, 0, 0
		}
		if fault != (sim.Fault{}) {
			return fmt.Errorf("play does not know faults with %+v", fault)
		}
	}
	if v.Time.Kind == sim.Fixed || v.Time.Kind == sim.Exponential || v.Time.Kind == sim.Uniform {
		v.Time = sim.Distribution{}
	}
	v.Name, v.Workers, v.Queue.Limit, v.Errors, v.ErrorTime, v.Faults = "", 0, 0, 0, 0, nil
	v.Queue.RetryAfter, v.Queue.DontRetry = 0, false
	if v.Rate.Burst > 0 { // it makes no default of a zero
		v.Rate = sim.Rate{}
	}
	if k := f.Arrivals.Kind; (k == sim.Poisson || k == sim.Constant && steps(f.Arrivals.Ramp)) && f.Arrivals.At == 0 {
		f.Arrivals = sim.Arrivals{}
	}
	f.Name, f.Calls, f.Processes, f.AttemptTimeout, f.Deadline = "", "", 0, 0, 0
	if !reflect.ValueOf(v).IsZero() || !reflect.ValueOf(f).IsZero() || s.Warmup != 0 || s.Step == 0 {
		return fmt.Errorf("play does not know %+v, %+v, a warm-up, or a scenario without a step", v, f)
	}
	return nil
}

// steps reports whether all factors of a ramp are 1 or 0.
func steps(ramp []sim.RampPoint) bool {
	for i, p := range ramp {
		if p.Factor != 0 && p.Factor != 1 || i > 0 && p.Factor != ramp[i-1].Factor && p.At != ramp[i-1].At {
			return false
		}
	}
	return true
}

// arrivals are the moments at which calls begin: a Poisson process whose rate
// follows the ramp, or a clockwork.
func arrivals(a *sim.Arrivals, horizon time.Duration, seed uint64) []time.Duration {
	var moments []time.Duration
	if a.Kind == sim.Constant {
		for n := 1; ; n++ {
			t := time.Duration(float64(n) / a.Rate * float64(time.Second))
			if t >= horizon {
				return moments
			}
			if factor(a.Ramp, t) == 1 {
				moments = append(moments, t)
			}
		}
	}
	luck := rand.New(rand.NewPCG(seed, 3))
	most := 1.0
	for _, p := range a.Ramp {
		most = max(most, p.Factor)
	}
	for at := 0.0; ; {
		at += luck.ExpFloat64() / (a.Rate * most)
		t := time.Duration(at * float64(time.Second))
		if t >= horizon {
			return moments
		}
		if luck.Float64()*most < factor(a.Ramp, t) {
			moments = append(moments, t)
		}
	}
}

// factor is the rate at t as a multiple of Arrivals.Rate.
func factor(ramp []sim.RampPoint, t time.Duration) float64 {
	if len(ramp) == 0 {
		return 1
	}
	i := slices.IndexFunc(ramp, func(p sim.RampPoint) bool { return p.At > t })
	switch i {
	case -1:
		return ramp[len(ramp)-1].Factor
	case 0:
		return ramp[0].Factor
	}
	a, b := ramp[i-1], ramp[i]
	return a.Factor + (b.Factor-a.Factor)*float64(t-a.At)/float64(b.At-a.At)
}

// processes are HTTP clients, each with a transport, and so a dependency, of its
// own.
func processes(f *sim.Fleet, c sim.Contender, base http.RoundTripper) ([]*http.Client, error) {
	p := c.Policy
	if f.AttemptTimeout > 0 {
		p.AttemptTimeout = f.AttemptTimeout
	}
	var clients []*http.Client
	for range max(f.Processes, 1) {
		client, err := lullhttp.NewClient(p, lullhttp.WithBase(base), lullhttp.With(c.Options...))
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// A tally counts what the simulator's recorder counts.
type tally struct {
	clock func() time.Duration
	width time.Duration // of a step

	mu       sync.Mutex // guards what follows
	r        sim.Result
	took     time.Duration // by calls that succeeded
	outcomes int64         // attempts, by the calls' outcomes
	made     []sim.Made
	err      error
}

func newTally(s *sim.Scenario, clock func() time.Duration) *tally {
	l := &tally{clock: clock, width: s.Step}
	l.r.Totals.Reasons = map[string]int64{}
	n := int((s.Horizon + s.Step - 1) / s.Step)
	l.r.Series = sim.Series{
		Step: s.Step, Calls: make([]float64, n), First: make([]float64, n), Retries: make([]float64, n), Good: make([]float64, n),
	}
	return l
}

func (l *tally) step(at time.Duration) int { return min(int(at/l.width), len(l.r.Series.Calls)-1) }

// call makes one call, and counts what becomes of it.
func (l *tally) call(ctx context.Context, client *http.Client, url string, deadline time.Duration) {
	began := l.clock()
	if deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, deadline)
		defer cancel()
	}
	var o lullhttp.Outcome
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err == nil {
		o, err = outcome(client.Do(req))
	}
	ended := l.clock()

	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = errors.Join(l.err, err)
		return
	}
	t, step := &l.r.Totals, l.step(began)
	t.Calls++
	t.Reasons[o.Reason.String()]++
	l.r.Series.Calls[step]++
	l.outcomes += int64(o.Attempts)
	l.made = append(l.made, sim.Made{Began: began, Ended: ended, Succeeded: o.Reason == engine.Success})
	if o.Attempts == 0 {
		t.Refused++
	}
	if o.Reason == engine.Success {
		t.Succeeded++
		l.took += ended - began
		l.r.Series.Good[step]++
	}
}

// outcome returns how a call went, from its response or its error.
func outcome(resp *http.Response, err error) (lullhttp.Outcome, error) {
	if err != nil {
		e, ok := errors.AsType[*lull.Error](err)
		if !ok {
			return lullhttp.Outcome{}, fmt.Errorf("a call ended without a *lull.Error: %w", err)
		}
		return lullhttp.Outcome{Attempts: e.Attempts, Reason: e.Reason}, nil
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	o := lullhttp.OutcomeOf(resp)
	if (resp.StatusCode == http.StatusOK) != (o.Reason == engine.Success) {
		return o, fmt.Errorf("a call with the answer %s ended with %v", resp.Status, o.Reason)
	}
	return o, nil
}

// counting is the transport below lullhttp's: it sees every attempt.
type counting struct {
	base http.RoundTripper
	log  *tally
}

func (c *counting) RoundTrip(req *http.Request) (*http.Response, error) {
	c.log.attempt(req.Header.Get(lullhttp.DefaultAttemptHeader) != "")
	resp, err := c.base.RoundTrip(req)
	c.log.answer(resp, err)
	return resp, err
}

func (l *tally) attempt(again bool) {
	step := l.step(l.clock())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.r.Totals.Attempts++
	if again {
		l.r.Totals.Retries++
		l.r.Series.Retries[step]++
	} else {
		l.r.Series.First[step]++
	}
}

func (l *tally) answer(resp *http.Response, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		l.r.Totals.AttemptsTimedOut++
	case err != nil:
		l.err = errors.Join(l.err, fmt.Errorf("an attempt ended without an answer: %w", err))
	case resp.StatusCode >= 400:
		l.r.Totals.AttemptsFailed++
	}
}

// result is called when all calls have ended.
func (l *tally) result() sim.Result {
	r, per := l.r, l.width.Seconds()
	r.Totals.MeanCompletion = l.took / time.Duration(max(r.Totals.Succeeded, 1))
	for i, n := range r.Series.Calls {
		r.Series.Good[i] /= max(n, 1)
		r.Series.Calls[i] /= per
		r.Series.First[i] /= per
		r.Series.Retries[i] /= per
	}
	return r
}

// failed returns an error for what may not happen in a flight on any machine.
func (l *tally) failed() error {
	if l.err == nil && l.outcomes != l.r.Totals.Attempts {
		return fmt.Errorf("calls tell of %d attempts, %d were made", l.outcomes, l.r.Totals.Attempts)
	}
	return l.err
}
