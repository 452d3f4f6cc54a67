package sim

import (
	"math"
	"strconv"
	"time"

	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
	"github.com/lullgo/lull/outlier"
)

func (w *world) sendAttempt(i uint32, f *flight) { w.sendNth(i, f, f.call.Attempts(), w.timeoutAt(f)) }

func (w *world) timeoutAt(f *flight) time.Duration {
	return saturating.Add(w.now, f.call.Timeout(w.now))
}

// sendNth sends attempt n of a call, which times out at until. The loss and the latency of the network decide whether and when
// the request arrives.
func (w *world) sendNth(i uint32, f *flight, n int, until time.Duration) {
	o := w.origins[f.origin]
	made := n
	if o.redials != nil {
		made += int(f.reloads) // each dial is the first attempt of a call
	}
	w.rec.attempt(w.now, made, o.target.index, o.tally)
	if w.watch != nil {
		w.watchAttempt(i, f, o, n)
	}
	if o.instant && o.target.plain && !o.pooled && !o.chooses {
		w.sendPlain(i, f, o, attemptRandom{key: f.key, n: uint64(n)}, until, 0, 0)
		return
	}
	src := draw.From(draw.Mix(f.key, uint64(n)))
	var there, home time.Duration
	lost := false
	if !o.instant {
		there, home = o.forward.draw(&src), o.forward.draw(&src)
		lost = o.network.Loss > 0 && draw.Unit(src.Uint64()) < o.network.Loss
		if !lost && o.network.LossBack > 0 && draw.Unit(src.Uint64()) < o.network.LossBack {
			home = never
		}
	}
	if o.pooled {
		k, j := w.newJob(i, f, o, n, &src, until, home)
		w.startTimer(i, f, until)
		w.getConnection(k, j, w.poolOf(o, f.process, j.host), leg{there: there, lost: lost})
		return
	}
	if lost {
		w.startTimer(i, f, until)
		return
	}
	// A rate limit must see attempts in the order of their arrival.
	if o.target.plain && o.target.rateInterval == 0 && !o.chooses {
		w.sendPlain(i, f, o, attemptRandom{key: src.Uint64()}, until, there, home)
		return
	}
	k, j := w.newJob(i, f, o, n, &src, until, home)
	if there > 0 {
		w.startTimer(i, f, until)
		w.at(w.now+there, eventReach, j.gen, k)
		return
	}
	flightGen := f.gen
	known := w.jobArrives(k, j)
	// The flight may have gone on already. If not, a timer is needed unless the
	// answer is certain to be in time.
	if f.gen == flightGen && (known == 0 || saturating.Add(known, home) > until) {
		w.startTimer(i, f, until)
	}
}

func (w *world) newJob(i uint32, f *flight, o *origin, n int, src *draw.Source, until, home time.Duration) (uint32, *job) {
	var host uint32
	if o.chooses || o.pooled && len(o.target.hosts) > 1 {
		host = w.chooseHost(i, f, o, n, src)
	}
	k, j := w.jobs.take()
	*j = job{gen: j.gen, flight: i, flightGen: f.gen, host: host, operation: f.operation, call: f.key, origin: o.index, key: src.Uint64(), until: until, responseTime: home, service: uint16(o.target.index), attempt: uint16(min(n, math.MaxUint16))}
	f.job = k
	if o.target.def.Admission.On { // whose gate looks at these
		j.hedge = f.slot > 0 && f.beside
		if o.hop != nil {
			j.attempt = uint16(min(n+int(f.retriesAbove), math.MaxUint16))
		}
	}
	return k, j
}

func (w *world) startTimer(i uint32, f *flight, until time.Duration) {
	if until != never {
		w.at(until, eventTimeout, f.gen, i)
	}
}

// attemptRandom is the randomness of one attempt, which many services have no use for.
type attemptRandom struct{ key, n uint64 }

// sendPlain sends an attempt to a service without a limit of workers. The time of its answer is known at once, so no job is
// needed.
func (w *world) sendPlain(i uint32, f *flight, o *origin, l attemptRandom, until, there, home time.Duration) {
	s := o.target
	if w.watch != nil && w.now+there < until {
		w.watchArrival(i, s.hostOf(l))
	}
	verdict, at := s.servePlain(w, w.now+there, l)
	if w.watch != nil {
		w.servedSeen(s, verdict, w.now+there, at)
	}
	if verdict == verdictOK && at <= w.scenario.Horizon && (at <= until || !s.def.CancelWork) {
		if o.countsEffects {
			w.countEffect(s, o, f.operation, f.key)
		}
		if at > until {
			w.rec.wasted(at)
		}
	}
	at = saturating.Add(at, home)
	switch {
	case at > until:
		w.startTimer(i, f, until)
	case at == w.now:
		f.gen++
		w.answerArrived(i, f, verdict)
	default:
		f.verdict = uint16(verdict)
		w.at(at, eventAnswer, f.gen, i)
	}
}

func (w *world) responseArrives(i uint32, j *job) {
	flight, verdict, host := j.flight, int(j.verdict), j.host
	there := !w.callerGone(j)
	w.dropJob(i, j)
	if there {
		f := w.flights.at(flight)
		switch o := w.origins[f.origin]; {
		case o.pooled:
			w.returnConnection(flight, verdict)
		case o.links != nil:
			f.parent = host
		}
		f.gen++
		w.answerArrived(flight, f, verdict)
	}
}

// hostChoice is the host that an attempt has gone to.
type hostChoice struct {
	set      *outlier.Set
	endpoint outlier.Endpoint
}

func (w *world) chooseHost(i uint32, f *flight, o *origin, n int, src *draw.Source) uint32 {
	if !o.chooses {
		return uint32(src.Below(uint64(len(o.target.hosts))))
	}
	call := i
	if f.slot > 0 && f.slot != ofMessage {
		call = f.parent
	}
	tried := w.hostsTried[call]
	if tried == nil {
		tried = &outlier.Tried{}
		w.hostsTried[call] = tried
	}
	set := w.setOf(o, f.process)
	w.pickKey, w.pickAsked = draw.Mix(f.key, uint64(n)), 1<<35
	at, ok := set.Pick(w.now, w.pick64, tried)
	if !ok {
		return 0 // never: there is a host
	}
	w.hostChoices[i] = hostChoice{set, at}
	host, _ := strconv.Atoi(at.Key())
	return uint32(host)
}

func (w *world) setOf(o *origin, process uint32) *outlier.Set {
	for len(o.sets) <= int(process) {
		o.sets = append(o.sets, nil)
	}
	if o.sets[process] == nil {
		set, err := outlier.New(o.network.Endpoints.Config, w.ejected)
		if err != nil {
			panic(err) // Validate has seen it
		}
		hosts := make([]string, len(o.target.hosts))
		for i := range hosts {
			hosts[i] = strconv.Itoa(i)
		}
		set.Update(w.now, hosts)
		o.sets[process] = set
	}
	return o.sets[process]
}

func (w *world) pick64() uint64 {
	w.pickAsked++
	return draw.Mix(w.pickKey, w.pickAsked)
}

func (w *world) ejected(c outlier.Change) {
	if c.Kind == outlier.Ejected {
		w.rec.count(w.now, &w.rec.totals.Ejections)
	}
}

func (w *world) reportOutcome(i uint32, outcome outlier.Evidence) {
	v, ok := w.hostChoices[i]
	if !ok {
		return
	}
	delete(w.hostChoices, i)
	v.set.Done(w.now, v.endpoint, outcome, w.pick64)
}

func (w *world) outcome(verdict int) outlier.Evidence {
	switch verdict {
	case verdictOK, verdictConflict:
		return outlier.Success
	case verdictTimeout, verdictRefused, verdictReset, verdictNoPort, verdictDialTimeout:
		return outlier.LocalOrigin
	}
	switch status, _ := strconv.Atoi(w.verdicts[verdict].Code); {
	case status >= 502 && status <= 504:
		return outlier.GatewayFailure
	case status >= 500:
		return outlier.FiveXX
	}
	return outlier.Success
}
