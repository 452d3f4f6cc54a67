package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// pooledCalls is a service that takes 100 ms, and one process with a pool that calls it at the given
// times. The network takes 10 ms each way.
func pooledCalls(p Pool, c Connections, times ...time.Duration) Scenario {
	p.On = true
	s := Scenario{
		Horizon: 2 * time.Minute, Step: 10 * millisecond,
		Services: []Service{{Name: "api", Time: fixed(100 * millisecond), Connections: c}},
		Fleets: []Fleet{{
			Calls: "api", Arrivals: Arrivals{Kind: AtOnce, At: times[0]}, AttemptTimeout: 10 * time.Second,
			Network: Network{Latency: fixed(10 * millisecond), Pool: p},
		}},
	}
	s.Fleets[0].Arrivals.Each = len(times)
	if last := times[len(times)-1]; last > times[0] { // at equal distances
		gap := (last - times[0]) / time.Duration(len(times)-1)
		s.Fleets[0].Arrivals = Arrivals{Kind: Constant, Rate: float64(time.Second) / float64(gap), At: times[0] - gap, Ramp: []RampPoint{{0, 1}, {last + gap/2, 1}, {last + gap/2, 0}}}
	}
	return s
}

func TestFirstRequestPaysForItsConnection(t *testing.T) {
	for _, c := range []struct {
		what string
		pool Pool
		conn Connections
		want time.Duration
	}{
		{"no pool", Pool{}, Connections{}, 120 * millisecond},
		{"TCP", Pool{On: true}, Connections{}, 140 * millisecond},
		{"TLS", Pool{On: true, RoundTrips: 2}, Connections{}, 160 * millisecond},
		{"the client's work", Pool{On: true, Handshake: fixed(3 * millisecond)}, Connections{}, 143 * millisecond},
		{"the service's work", Pool{On: true}, Connections{Handshake: fixed(30 * millisecond)}, 170 * millisecond},
	} {
		s := pooledCalls(c.pool, c.conn, time.Second, 2*time.Second)
		s.Fleets[0].Network.Pool = c.pool
		r := play(t, s, once())
		want(t, c.what+": the first", r.Latency.Max, c.want)
		want(t, c.what+": succeeded", r.Totals.Succeeded, 2)
		if c.pool.On {
			want(t, c.what+": the second", 2*r.Latency.Mean-r.Latency.Max, 120*millisecond)
			want(t, c.what+": dials", r.Connections.Dials, 1)
			want(t, c.what+": waits", r.Connections.Waits, 1)
			want(t, c.what+": waited", r.Connections.Waited, c.want-120*millisecond)
		}
	}
}

func TestIdleConnections(t *testing.T) {
	at := time.Second
	for _, c := range []struct {
		what  string
		pool  Pool
		conn  Connections
		times []time.Duration
		dials int64
	}{
		{"all are there", Pool{Open: 3}, Connections{}, []time.Duration{at, at, at}, 0},
		{"as many as the service takes", Pool{Open: 3}, Connections{Limit: 2}, []time.Duration{at, at, at}, 1},
		{"for a second", Pool{Open: 3, IdleFor: at - 1}, Connections{}, []time.Duration{at, at, at}, 3},
		{"all are kept", Pool{}, Connections{}, []time.Duration{at, at, at}, 3},
		{"each call has one", Pool{Idle: -1}, Connections{}, []time.Duration{at, 2 * at, 3 * at}, 3},
		{"for long enough", Pool{IdleFor: 900 * millisecond}, Connections{}, []time.Duration{at, 2 * at, 3 * at}, 1},
		{"not for long enough", Pool{IdleFor: 800 * millisecond}, Connections{}, []time.Duration{at, 2 * at, 3 * at}, 3},
		{"the service closes them", Pool{}, Connections{IdleFor: 800 * millisecond}, []time.Duration{at, 2 * at, 3 * at}, 3},
	} {
		r := play(t, pooledCalls(c.pool, c.conn, c.times...), once())
		want(t, c.what+": dials", r.Connections.Dials, c.dials)
		want(t, c.what+": succeeded", r.Totals.Succeeded, 3)
	}
}

// A process that closes a connection keeps its port for a minute; one that the service closes does not.
func TestPortsRunOut(t *testing.T) {
	at := time.Second
	times := []time.Duration{at, 2 * at, 3 * at, 4 * at}
	r := play(t, pooledCalls(Pool{Idle: -1, Ports: 2}, Connections{}, times...), once())
	want(t, "succeeded", r.Totals.Succeeded, 2)
	want(t, "without a port", r.Connections.NoPort, 2)
	r = play(t, pooledCalls(Pool{Idle: -1, Ports: 2, TimeWait: 1500 * millisecond}, Connections{}, times...), once())
	want(t, "after a shorter time: succeeded", r.Totals.Succeeded, 4)
	r = play(t, pooledCalls(Pool{Ports: 2}, Connections{IdleFor: 500 * millisecond}, times...), once())
	want(t, "closed by the service: succeeded", r.Totals.Succeeded, 4)
}

// The service has room for one connection. Three calls come at once, from three processes.
func TestConnectionLimit(t *testing.T) {
	at := time.Second
	for _, c := range []struct {
		what                       string
		conn                       Connections
		succeeded, refused, lastMs int64
		dropped                    int64
	}{
		// Each of them waits until the one before is closed, 50 ms after its work.
		{"they wait", Connections{Limit: 1, IdleFor: 50 * millisecond}, 3, 0, 1140 + 2*180, 0},
		{"one waits", Connections{Limit: 1, Backlog: 1, IdleFor: 50 * millisecond}, 2, 1, 1140 + 180, 0},
		{"refused", Connections{Limit: 1, Refuse: true}, 1, 2, 1140, 0},
		{"asked again after a second", Connections{Limit: 1, Backlog: 1, Drop: true, IdleFor: 50 * millisecond}, 3, 0, 2140, 1},
	} {
		s := pooledCalls(Pool{}, c.conn, at)
		s.Fleets[0].Processes = 3
		r := play(t, s, once())
		want(t, c.what+": succeeded", r.Totals.Succeeded, c.succeeded)
		want(t, c.what+": refused", r.Connections.Refused, c.refused)
		want(t, c.what+": dropped", r.Connections.Dropped, c.dropped)
		want(t, c.what+": last", r.Totals.Last, time.Duration(c.lastMs)*millisecond)
		want(t, c.what+": most", r.Connections.Most, 1)
	}
}

// A handshake takes the only worker, and waits for it as an attempt does.
func TestHandshakesTakeWorkers(t *testing.T) {
	s := pooledCalls(Pool{}, Connections{Handshake: fixed(30 * millisecond)}, time.Second)
	s.Fleets[0].Processes = 2
	s.Services[0].Workers, s.Services[0].Queue.Limit = 1, 10
	r := play(t, s, once())
	// Handshakes until 1.040 and 1.070; the first request comes at 1.060, the second at 1.090.
	wantTimes(t, "done", moments(r.Series, r.Series.Goodput), 1180*millisecond, 1280*millisecond)

	// Nobody waits for the third handshake any more when its turn comes, so that it costs nothing.
	s.Fleets[0].Processes, s.Fleets[0].Network.Pool.DialTimeout = 3, 45*millisecond
	s.Services[0].Connections.Handshake = fixed(20 * millisecond)
	r = play(t, s, once())
	want(t, "one was in time", r.Totals.Succeeded, 1)
	want(t, "two were not", r.Connections.Failed, 2)
	want(t, "the one that was", r.Latency.Max, 160*millisecond)
}

func TestCrashClosesConnections(t *testing.T) {
	for _, c := range []struct {
		what      string
		silent    bool
		succeeded int64
		dials     int64
		reasons   int64 // attempts that timed out
	}{
		// Calls at 1, 2 (it is down from 1.5 s to 2.5), 3 and 4 s.
		{"refused while it is down", false, 3, 3, 0},
		// At 2 s there is no answer, at 3 s a reset, of which there are two connections: the one
		// from before is used up by the call at 2 s.
		{"no answer", true, 3, 2, 1},
	} {
		s := pooledCalls(Pool{DialTimeout: 400 * millisecond}, Connections{}, time.Second, 2*time.Second, 3*time.Second, 4*time.Second)
		s.Fleets[0].AttemptTimeout = 300 * millisecond
		s.Services[0].Faults = []Fault{{Kind: Crash, At: 1500 * millisecond, For: time.Second, Silent: c.silent}}
		r := play(t, s, once())
		want(t, c.what+": succeeded", r.Totals.Succeeded, c.succeeded)
		want(t, c.what+": dials", r.Connections.Dials, c.dials)
		want(t, c.what+": timed out", r.Totals.AttemptsTimedOut, c.reasons)
	}
	// Two connections are half-open; after the machine is back each of them resets one attempt.
	s := pooledCalls(Pool{}, Connections{}, time.Second, time.Second)
	s.Fleets = append(s.Fleets, s.Fleets[0])
	s.Fleets[0].Arrivals = Arrivals{Kind: Periodic, Every: 2 * time.Second, At: time.Second}
	s.Fleets = s.Fleets[:1]
	s.Services[0].Faults = []Fault{{Kind: Crash, At: 1500 * millisecond, For: time.Second, Silent: true}}
	s.Horizon = 10 * time.Second
	r := play(t, s, once())
	want(t, "reset", r.Totals.AttemptsFailed, 1)
	want(t, "dials", r.Connections.Dials, 2)
}

// A refusal takes 50 ms of the only worker's time, which the attempt after it pays for.
func TestRefusalTakesTime(t *testing.T) {
	at := time.Second
	s := Scenario{
		Horizon: 10 * time.Second, Step: 10 * millisecond,
		Services: []Service{{Name: "api", Workers: 1, Queue: Queue{Limit: 1}, Time: fixed(100 * millisecond), RefusalTime: 50 * millisecond}},
		Fleets:   callsAt(at, at, at, at),
	}
	r := play(t, s, once())
	wantTimes(t, "done", moments(r.Series, r.Series.Goodput), 1100*millisecond, 1300*millisecond)
}

// Refusals take all of their time from a worker that has other work, and what time it has from one that has none.
func TestRefusalsTakeTheTimeOfIdleWorkers(t *testing.T) {
	at := slices.Repeat([]int{1000}, 16)
	s := one(Queue{Limit: 5}, at...)
	s.Services[0].RefusalTime = 20 * millisecond
	r := play(t, s, once())
	want(t, "queue full", r.Totals.QueueFull, 10)
	want(t, "six attempts and ten refusals", r.Totals.Last, time.Second+6*100*millisecond+10*20*millisecond)

	s = one(Queue{}, 1000, 1010, 1120, 1300)
	s.Services[0].RefusalTime = 50 * millisecond
	wantDone(t, "20 ms idle", play(t, s, once()), [2]int{1100, 100}, [2]int{1250, 130}, [2]int{1400, 100})

	s = one(Queue{}, 1000, 1010, 1215)
	s.Services[0].RefusalTime = 50 * millisecond
	s.Services[0].Faults = []Fault{{Kind: Stall, At: 1105 * millisecond, For: 100 * millisecond}}
	wantDone(t, "15 ms idle, and a stall", play(t, s, once()), [2]int{1100, 100}, [2]int{1350, 135})

	// A rate that leaves most workers idle: the refusals disturb nobody.
	s = one(Queue{})
	s.Services[0].Workers, s.Services[0].Rate, s.Services[0].RefusalTime = 10, Rate{PerSecond: 10, Burst: 1}, millisecond
	s.Fleets = []Fleet{{Calls: "api", Arrivals: Arrivals{Kind: Constant, Rate: 1000}}}
	want(t, "longest", play(t, s, once()).Latency.Max, 100*millisecond)
}

// Of HTTP/1.1, a tenth of the calls take longer than the timeout: each of these needs a new
// connection, and nobody else does.
func TestConnectionsAreNotLost(t *testing.T) {
	s := pooledCalls(Pool{Size: 20, Idle: 20}, Connections{Limit: 500}, time.Second)
	s.Horizon = time.Minute
	s.Services[0].Time = Distribution{Kind: Uniform, Max: 100 * millisecond}
	s.Fleets[0].Arrivals = Arrivals{Rate: 100}
	s.Fleets[0].AttemptTimeout = 110 * millisecond
	r := play(t, s, once())
	if c := r.Connections; c.Broken == 0 || c.Dials < c.Broken || c.Dials > c.Broken+20 || r.Totals.AttemptsTimedOut > c.Broken+5 {
		t.Errorf("%+v, %d timed out", c, r.Totals.AttemptsTimedOut)
	}
}

// The job of a handshake has the number of a connection, and the job of an attempt that of a
// flight. If the two numbers are equal, the end of the attempt does not end the handshake.
func TestCancellingAnAttemptLeavesHandshakesAlone(t *testing.T) {
	s := pooledCalls(Pool{}, Connections{}, time.Second)
	w := must.Have(newWorld(&s, Contender{Policy: once()}, Options{}))
	at, f := w.flights.take()
	k, j := w.jobs.take()
	f.gen, f.job = 8, k
	for _, c := range []struct {
		hop  uint16
		left jobState
	}{{0, jobIdle}, {handshake, jobInService}} {
		*j = job{flight: at, flightGen: 7, hop: c.hop}
		w.startJob(k, j)
		w.cancelAttempt(f)
		want(t, fmt.Sprintf("hop %d", c.hop), j.state, c.left)
	}
}
