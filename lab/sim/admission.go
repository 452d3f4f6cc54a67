package sim

import (
	"time"

	"github.com/lullgo/lull/lab/sim/internal/draw"
	"github.com/lullgo/lull/server/admission"
)

// A visitor is an attempt's place at the gate of a host, which is admission control, from
// its arrival to its refusal or departure. Tickets are in use by the gate meanwhile, and
// in a slab they do not move.
type visitor struct {
	admission.Ticket
	job      uint32
	decision admission.Decision // Queued until there is another
}

// mostRetryAfter is the longest Retry-After that admission control gives, in seconds.
const mostRetryAfter = 30

// newGate is admission control that knows nothing yet.
func (w *world) newGate(s *service) *admission.Controller {
	g, err := admission.New(s.def.Admission.Config, admission.WithRand(w.gateRandom))
	if err != nil {
		panic(err) // Validate has seen it
	}
	return g
}

// gateRandom is the randomness of the gates: a hash of the attempt because of which one is
// asked, and of how often. It does not depend on other attempts.
func (w *world) gateRandom() uint64 {
	w.gateAsked++
	return draw.Mix(w.gateKey, w.gateAsked)
}

// A gateQuestion is one question to a gate about an attempt.
type gateQuestion uint64

const (
	gateArrive gateQuestion = iota
	gateLeave
	gateDepart
)

// gate is the one that j stands at or has passed, and its visitor there, for a question about it.
func (w *world) gate(j *job, o gateQuestion) (*admission.Controller, *visitor) {
	w.gateKey, w.gateAsked = ^j.key, uint64(o)<<32
	return w.services[j.service].hosts[j.host].gate, w.visitors.at(j.visitor - 1)
}

// arriveAtGate is the arrival of a job at a host with a gate. It returns what jobArrives returns.
func (w *world) arriveAtGate(i uint32, j *job) (answer time.Duration) {
	s := w.services[j.service]
	h := &s.hosts[j.host]
	if h.now(w.now).down {
		return w.sendResponse(i, j, verdictRefused, w.now)
	}
	if s.rateInterval > 0 && s.overRate(w, w.now) {
		h.addRefusalWork(s, w.now)
		return w.sendResponse(i, j, s.rateLimited, w.now)
	}
	k, v := w.visitors.take()
	if v.Settled == nil { // once for each place
		v.Settled = func(_ *admission.Ticket, d admission.Decision) {
			v.decision = d
			w.at(w.now, eventGateDecided, w.jobs.at(v.job).gen, v.job)
		}
	}
	v.job, j.visitor = i, k+1
	v.decision = admission.Decision{Outcome: admission.Queued}
	r := admission.Request{Attempt: int(j.attempt), Hedge: j.hedge}
	if j.until != never && !s.def.Admission.NoDeadlines {
		r.Deadline = j.until
	}
	gate, _ := w.gate(j, gateArrive)
	switch d := gate.Arrive(w.now, r, &v.Ticket); d.Outcome {
	case admission.Admitted:
		return w.passGate(i, j)
	case admission.Refused:
		return w.shedJob(i, j, d)
	}
	j.state = jobAtGate
	h.atGate++
	if v.Until != never {
		w.at(v.Until, eventGateOverdue, j.gen, i)
	}
	return 0
}

// passGate is the way of an attempt that was let in.
func (w *world) passGate(i uint32, j *job) (answer time.Duration) {
	s := w.services[j.service]
	src := draw.From(j.key)
	verdict, at := s.drawFailure(w, s.hosts[j.host].now(w.now), w.now, &src)
	j.key = src.Uint64()
	if verdict == verdictOK {
		return w.placeJob(i, j)
	}
	return w.failJob(i, j, verdict, at) // until then it has its place
}

func (w *world) gateDecided(i uint32, j *job) {
	w.services[j.service].hosts[j.host].atGate--
	if d := w.visitors.at(j.visitor - 1).decision; d.Outcome == admission.Refused {
		w.shedJob(i, j, d)
		return
	}
	w.passGate(i, j)
}

// gateOverdue ends the wait of an attempt, if it still stands at the gate.
func (w *world) gateOverdue(i uint32, j *job) {
	if j.state != jobAtGate {
		return
	}
	gate, v := w.gate(j, gateLeave)
	if d, left := gate.Leave(w.now, &v.Ticket); left {
		w.services[j.service].hosts[j.host].atGate--
		w.shedJob(i, j, d)
	}
}

func (w *world) shedJob(i uint32, j *job, d admission.Decision) time.Duration {
	w.rec.count(w.now, &w.rec.totals.Shed)
	s := w.services[j.service]
	s.hosts[j.host].addRefusalWork(s, w.now)
	w.releaseVisitor(j)
	return w.sendResponse(i, j, w.refusal(d), w.now)
}

// refusal is the verdict of lullhttp about the response to d.
func (w *world) refusal(d admission.Decision) int {
	if d.DontRetry {
		return verdictStop
	}
	seconds := (d.RetryAfter + time.Second - 1) / time.Second
	return w.retryAfter[min(max(seconds, 1), mostRetryAfter)-1]
}

// leaveGate takes j, whose caller has gone, away from the gate.
func (w *world) leaveGate(j *job) {
	gate, v := w.gate(j, gateLeave)
	if _, left := gate.Leave(w.now, &v.Ticket); !left {
		gate.Depart(w.now, &v.Ticket, admission.Unmeasured) // let in at this moment; or refused, and then it is nothing
	}
	w.services[j.service].hosts[j.host].atGate--
	w.releaseVisitor(j)
}

// departGate reports to the gate that j, which it has let in, is over.
func (w *world) departGate(j *job, r admission.WorkResult) {
	if j.visitor == 0 {
		return
	}
	gate, v := w.gate(j, gateDepart)
	gate.Depart(w.now, &v.Ticket, r)
	w.releaseVisitor(j)
}

// forgetVisitor ends the visit of j to a gate that has crashed.
func (w *world) forgetVisitor(j *job) {
	if j.visitor == 0 {
		return
	}
	v := w.visitors.at(j.visitor - 1)
	v.Ticket = admission.Ticket{Settled: v.Settled}
	w.releaseVisitor(j)
}

// releaseVisitor gives back the place of a visitor that has nothing more to do with the gate.
func (w *world) releaseVisitor(j *job) {
	w.visitors.release(j.visitor - 1)
	j.visitor = 0
}
