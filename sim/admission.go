package sim

import (
	"time"

	"github.com/lullgo/lull/admission"
	"github.com/lullgo/lull/sim/internal/draw"
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
	g, err := admission.New(s.def.Admission.Config, admission.WithRandom(w.chance))
	if err != nil {
		panic(err) // Validate has seen it
	}
	return g
}

// chance is the randomness of the gates: a hash of the attempt because of which one is
// asked, and of how often. It does not depend on other attempts.
func (w *world) chance() uint64 {
	w.gateAsked++
	return draw.Mix(w.gateKey, w.gateAsked)
}

// A gateQuestion is one question to a gate about an attempt.
type gateQuestion uint64

const (
	arriving gateQuestion = iota
	leaving
	departing
)

// gate is the one that j stands at or has passed, and its visitor there, for a question about it.
func (w *world) gate(j *job, o gateQuestion) (*admission.Controller, *visitor) {
	w.gateKey, w.gateAsked = ^j.key, uint64(o)<<32
	return w.services[j.service].hosts[j.host].gate, w.visitors.at(j.visitor - 1)
}

// introduce sets in j what a gate looks at of an attempt that begins.
func (j *job) introduce(f *flight, o *origin) {
	j.hedge = f.slot > 0 && f.beside
	if o.hop != nil {
		j.attempt = uint16(min(int(j.attempt)+int(f.above), 1<<16-1))
	}
}

// reachGate is reach where there is a gate.
func (w *world) reachGate(i uint32, j *job) (answer time.Duration) {
	s := w.services[j.service]
	h := &s.hosts[j.host]
	if h.now(w.now).down {
		return w.respond(i, j, verdictRefused, w.now)
	}
	if s.interval > 0 && s.limited(w, w.now) {
		h.refused(s)
		return w.respond(i, j, s.rateLimited, w.now)
	}
	k, v := w.visitors.take()
	if v.Settled == nil { // once for each place
		v.Settled = func(_ *admission.Ticket, d admission.Decision) {
			v.decision = d
			w.at(w.now, settled, w.jobs.at(v.job).gen, v.job)
		}
	}
	v.job, j.visitor = i, k+1
	v.decision = admission.Decision{Outcome: admission.Queued}
	r := admission.Request{Attempt: int(j.attempt), Hedge: j.hedge}
	if j.until != never && !s.def.Admission.NoDeadlines {
		r.Deadline = j.until
	}
	gate, _ := w.gate(j, arriving)
	switch d := gate.Arrive(w.now, r, &v.Ticket); d.Outcome {
	case admission.Admitted:
		return w.pass(i, j)
	case admission.Refused:
		return w.shed(i, j, d)
	}
	j.state = standing
	h.stand++
	if v.Until != never {
		w.at(v.Until, overdue, j.gen, i)
	}
	return 0
}

// pass is the way of an attempt that was let in.
func (w *world) pass(i uint32, j *job) (answer time.Duration) {
	s := w.services[j.service]
	src := draw.From(j.key)
	verdict, at := s.fail(w, s.hosts[j.host].now(w.now), w.now, &src)
	j.key = src.Uint64()
	switch {
	case verdict == verdictOK:
		return w.enter(i, j)
	case at <= w.now:
		return w.respond(i, j, verdict, w.now)
	}
	j.verdict, j.state = uint16(verdict), failing // and has its place as long
	w.at(at, failed, j.gen, i)
	return at
}

// settle continues an attempt that waited at the gate.
func (w *world) settle(i uint32, j *job) {
	w.services[j.service].hosts[j.host].stand--
	if d := w.visitors.at(j.visitor - 1).decision; d.Outcome == admission.Refused {
		w.shed(i, j, d)
		return
	}
	w.pass(i, j)
}

// overdue ends the wait of an attempt, if it still stands at the gate.
func (w *world) overdue(i uint32, j *job) {
	if j.state != standing {
		return
	}
	gate, v := w.gate(j, leaving)
	if d, left := gate.Leave(w.now, &v.Ticket); left {
		w.services[j.service].hosts[j.host].stand--
		w.shed(i, j, d)
	}
}

// shed answers j that it was refused.
func (w *world) shed(i uint32, j *job, d admission.Decision) time.Duration {
	w.rec.rejected(w.now, rejectedShed)
	s := w.services[j.service]
	s.hosts[j.host].refused(s)
	w.release(j)
	return w.respond(i, j, w.refusal(d), w.now)
}

// refusal is the verdict of lullhttp about the response to d.
func (w *world) refusal(d admission.Decision) int {
	if d.DontRetry {
		return verdictStop
	}
	seconds := (d.RetryAfter + time.Second - 1) / time.Second
	return w.retryAfter[min(max(seconds, 1), mostRetryAfter)-1]
}

// leave takes j, whose caller has gone, away from the gate.
func (w *world) leave(j *job) {
	gate, v := w.gate(j, leaving)
	if _, left := gate.Leave(w.now, &v.Ticket); !left {
		gate.Depart(w.now, &v.Ticket, admission.Unmeasured) // let in at this moment; or refused, and then it is nothing
	}
	w.services[j.service].hosts[j.host].stand--
	w.release(j)
}

// came returns the result, for the gate, of an attempt that gets the given answer.
func (w *world) came(j *job, verdict int) admission.Result {
	if verdict == verdictOK && !w.gone(j) {
		return admission.Done
	}
	return admission.Failed
}

// depart reports to the gate that j, which it has let in, is over.
func (w *world) depart(j *job, r admission.Result) {
	if j.visitor == 0 {
		return
	}
	gate, v := w.gate(j, departing)
	gate.Depart(w.now, &v.Ticket, r)
	w.release(j)
}

// forget is depart where the gate itself has crashed.
func (w *world) forget(j *job) {
	if j.visitor == 0 {
		return
	}
	v := w.visitors.at(j.visitor - 1)
	v.Ticket = admission.Ticket{Settled: v.Settled}
	w.release(j)
}

// release gives back the place of a visitor that has nothing more to do with the gate.
func (w *world) release(j *job) {
	w.visitors.give(j.visitor - 1)
	j.visitor = 0
}
