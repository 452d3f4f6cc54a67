package sim

import (
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
)

type links struct {
	def   *Link
	from  *service // nil: none
	key   uint64   // of their randomness
	links []link   // by process
}

type link struct {
	since      time.Duration // its messages wait
	host       uint32        // to which it is connected, plus one; 0: to none
	epoch      uint32        // goes up when its own host crashes; a call of an earlier one is nobody's
	losses     uint32
	dialling   bool // a call is under way
	buffering  bool // its messages wait
	bufferFull bool // and no more can
}

// outbox is the messages that wait in the memory of a host, as a volume that grows steadily.
type outbox struct {
	bytes     float64
	at        time.Duration // until which bytes are counted
	buffers   int           // that hold something, or will
	perSecond int64         // what comes into those that are not full
	dropping  int64         // and what comes for those that are
	alarm     time.Duration // when the memory may be full; zero: no event is under way for that
	restart   time.Duration // when the host is up again after its latest crash
}

func (w *world) newLinks(o *origin, from *service, key uint64) *links {
	l := &links{def: &o.fleet.Link, from: from, key: draw.Mix(key, 1<<41+uint64(o.index)), links: make([]link, o.processes)}
	for p := range l.links {
		src := draw.From(draw.Mix(l.key, uint64(p)))
		host := uint32(src.Below(uint64(len(o.target.hosts))))
		l.links[p].host = host + 1
		o.target.hosts[host].links++
	}
	o.target.plain = false // it matters which host has answered
	o.target.links = append(o.target.links, o)
	if from != nil {
		from.links = append(from.links, o)
	}
	return l
}

// stateIndex returns the process whose Dependency process p uses: the host that it runs on, or itself.
func (l *links) stateIndex(p uint32) uint32 {
	if l.from == nil {
		return p
	}
	return p % uint32(len(l.from.hosts))
}

// hostUp reports whether the host works that process p runs on, and its processes have begun to dial after its latest crash.
func (l *links) hostUp(w *world, p uint32) bool {
	host := l.stateIndex(p)
	return l.from == nil || w.hostUp(l.from, host) && l.from.hosts[host].outbox.restart == 0
}

// disturbLink is an arrival of a fleet with a Link: process p loses its connection. If it has given up,
// it dials again.
func (w *world) disturbLink(o *origin, p uint32) {
	switch k := &o.links.links[p]; {
	case k.host != 0:
		w.loseLink(o, p)
	case !k.dialling && o.links.hostUp(w, p):
		w.dialLink(o, p, false)
	}
}

func (w *world) loseLink(o *origin, p uint32) {
	w.unlink(o, p)
	w.fillBuffer(o, p)
	w.dialLink(o, p, false)
}

func (w *world) unlink(o *origin, p uint32) {
	if k := &o.links.links[p]; k.host != 0 {
		o.target.hosts[k.host-1].links--
		k.host = 0
		w.rec.count(w.now, &w.rec.totals.Disconnects)
		if o.tally != nil {
			w.rec.count(w.now, &o.tally.totals.Disconnects)
		}
	}
}

// dialLink begins the call that connects process p again. It is fresh if the process has just begun.
// The first dial is an event, since many processes may lose their connections at once.
func (w *world) dialLink(o *origin, p uint32, fresh bool) {
	k := &o.links.links[p]
	k.dialling = true
	k.losses++
	i, f := w.flights.take()
	f.origin, f.process, f.reloads, f.parentGen, f.began = o.index, p, 0, k.epoch, w.now
	f.key = draw.Mix(draw.Mix(o.links.key, 1<<40+uint64(p)), uint64(k.losses))
	f.call = engine.Call{}
	if o.redials == nil {
		w.at(w.now, eventCallAgain, f.gen, i)
		return
	}
	if fresh {
		o.redials[p] = redialPlan.Redial()
	}
	w.loseConnection(i, f, o, p, fresh)
}

// linkConnected is the success of a dial, at host f.parent. That may have crashed meanwhile.
func (w *world) linkConnected(o *origin, f *flight) {
	k := &o.links.links[f.process]
	k.dialling = false
	if !w.hostUp(o.target, f.parent) {
		w.dialLink(o, f.process, false)
		return
	}
	w.emptyBuffer(o, f.process)
	k.host = f.parent + 1
	o.target.hosts[f.parent].links++
}

// hostCrashed reports whether the host on which the process of f runs has crashed since the call began.
func (o *origin) hostCrashed(f *flight) bool {
	return o.links != nil && o.links.links[f.process].epoch != f.parentGen
}

// retireFlight gives up the place of a process that is gone. A call of it may be under way, which ends.
func (w *world) retireFlight(i uint32, f *flight, o *origin, calls bool) {
	if calls {
		w.rec.callEnds(w.now, f.began, engine.Canceled, max(f.call.Attempts(), int(f.reloads)), o)
	}
	w.rec.userLeft(w.now, w.userBegan(i, f))
	f.gen++
	w.flights.release(i)
}

// loseLinks is the crash of a host: the connections to it are lost, and the processes on it.
func (w *world) loseLinks(s *service, host uint32) {
	from := false
	for _, o := range s.links {
		l := o.links
		if l.from != s {
			for p := range l.links {
				if l.links[p].host == host+1 {
					w.loseLink(o, uint32(p))
				}
			}
			continue
		}
		from = true
		for p := int(host); p < len(l.links); p += len(s.hosts) {
			k := &l.links[p]
			w.unlink(o, uint32(p))
			k.epoch++
			k.dialling, k.buffering, k.bufferFull = false, false, false
		}
	}
	if !from {
		return
	}
	b := &s.hosts[host].outbox
	b.settle(w)
	w.rec.links.Lost += int64(b.bytes)
	*b = outbox{at: w.now, restart: s.upAt(host, w.now)}
	if b.restart < never {
		w.at(b.restart, eventRestart, s.index, host)
	}
}

// restartHost has the processes dial that run on a host, which is up again.
func (w *world) restartHost(s *service, host uint32) {
	b := &s.hosts[host].outbox
	if b.restart != w.now {
		return // it has crashed again, or it is the second event of crashes that overlap
	}
	b.restart = 0
	for _, o := range s.links {
		if o.links.from != s {
			continue
		}
		for p := int(host); p < len(o.links.links); p += len(s.hosts) {
			w.fillBuffer(o, uint32(p))
			w.dialLink(o, uint32(p), true)
		}
	}
}

var redialPlan, _ = engine.NewRedialPlan(engine.RedialPolicy{}) // the zero policy is valid

// newRedials returns what a fleet's processes know of the connection that each of them keeps
// (Fleet.Redial); nil for a fleet that makes calls. The arrivals of such a fleet are the moments at
// which a connection that has lasted is lost. A call begins there, has a dial for each attempt, and
// ends when the process is connected again. Package engine decides when to dial.
func newRedials(f *Fleet) []engine.Redial {
	if !f.Redial {
		return nil
	}
	each := make([]engine.Redial, max(f.Processes, 1))
	for i := range each {
		each[i] = redialPlan.Redial()
		each[i].Connected(-redialPlan.Policy().Lasting)
	}
	return each
}

// loseConnection begins a call of process p: its connection has just been lost, or it is fresh and has never
// had one.
func (w *world) loseConnection(i uint32, f *flight, o *origin, p uint32, fresh bool) {
	f.process, f.reloads, f.began = p, 0, w.now
	w.rec.callBegins(w.now, o)
	w.seedFor(f, true)
	var wait time.Duration
	if fresh {
		wait = o.redials[p].Start(w.now, w.random)
	} else {
		wait = o.redials[p].Lost(w.now, lull.Verdict{}, 0, w.random).Wait
	}
	w.at(saturating.Add(w.now, wait), eventCallAgain, f.gen, i)
}

// dialOnce makes one attempt to connect. The dependency admits it, bounds it in time and learns from
// it, as from a call that is made once.
func (w *world) dialOnce(i uint32, f *flight, o *origin) {
	f.key = draw.Mix(f.key, 1<<34) // each has its own randomness
	spec := o.spec
	spec.Once = true
	d := o.dependency(o.stateIndex(f.process))
	if no := d.StartIn(&f.call, w.now, &spec); no != engine.Success {
		var v lull.Verdict
		if no == engine.CircuitOpen {
			v.After = max(d.Breaker().RetryAt(w.now)-w.now, 0)
		}
		w.redialFailed(i, f, o, v)
		return
	}
	w.askForAttempt(i, f)
}

// redialFailed has the process dial again, after an attempt that ended with v.
func (w *world) redialFailed(i uint32, f *flight, o *origin, v lull.Verdict) {
	if o.hostCrashed(f) {
		w.retireFlight(i, f, o, true)
		return
	}
	f.gen++
	if f.reloads < 255 {
		f.reloads++
	}
	w.seedFor(f, false)
	step := o.redials[f.process].Failed(w.now, v, w.random)
	if step.Done { // it stays without a connection
		w.rec.callEnds(w.now, f.began, step.Reason, int(f.reloads), o)
		w.rec.userLeft(w.now, f.began)
		if o.links != nil {
			o.links.links[f.process].dialling = false
		}
		w.flights.release(i)
		return
	}
	w.at(saturating.Add(w.now, step.Wait), eventCallAgain, f.gen, i)
}

// settle counts what has come until now.
func (b *outbox) settle(w *world) {
	if b.at == w.now {
		return
	}
	seconds := (w.now - b.at).Seconds()
	b.at = w.now
	b.bytes += float64(float64(b.perSecond) * seconds)
	w.rec.dropped += float64(float64(b.dropping) * seconds)
	w.rec.links.Most = max(w.rec.links.Most, int64(b.bytes))
}

func (w *world) buffered(h *host) int {
	if h.outbox.perSecond > 0 {
		h.outbox.settle(w)
	}
	return int(h.outbox.bytes)
}

// fillBuffer has the messages of process p wait from now on.
func (w *world) fillBuffer(o *origin, p uint32) {
	l := o.links
	if l.def.PerSecond == 0 {
		return
	}
	k, host := &l.links[p], l.stateIndex(p)
	k.since, k.buffering = w.now, true
	b := &l.from.hosts[host].outbox
	b.settle(w)
	b.buffers++
	b.perSecond += int64(l.def.PerSecond)
	if full := l.def.fullFor(); full < never {
		w.at(saturating.Add(w.now, full), eventBufferFull, uint32(o.index), p)
	}
	w.watchMemory(l.from, host, 0)
}

// bufferFull is the time at which the buffer of process p may be full.
func (w *world) bufferFull(o *origin, p uint32) {
	l := o.links
	k := &l.links[p]
	if !k.buffering || k.bufferFull || saturating.Add(k.since, l.def.fullFor()) != w.now {
		return
	}
	k.bufferFull = true
	b := &l.from.hosts[l.stateIndex(p)].outbox
	b.settle(w)
	b.perSecond -= int64(l.def.PerSecond)
	b.dropping += int64(l.def.PerSecond)
}

// emptyBuffer sends the messages of process p that waited.
func (w *world) emptyBuffer(o *origin, p uint32) {
	l := o.links
	k := &l.links[p]
	if !k.buffering {
		return
	}
	b := &l.from.hosts[l.stateIndex(p)].outbox
	b.settle(w)
	took := min(w.now-k.since, l.def.fullFor())
	b.bytes = max(b.bytes-float64(float64(l.def.PerSecond)*took.Seconds()), 0)
	if k.bufferFull {
		b.dropping -= int64(l.def.PerSecond)
	} else {
		b.perSecond -= int64(l.def.PerSecond)
	}
	if b.buffers--; b.buffers == 0 {
		b.bytes = 0 // what was rounded
	}
	k.buffering, k.bufferFull = false, false
}

// watchMemory makes an event of the time at which the messages will have filled the memory of a host, as
// things are now. It is at least a pause away.
func (w *world) watchMemory(s *service, host uint32, pause time.Duration) {
	h, d := &s.hosts[host], &s.def.Heap
	b := &h.outbox
	if b.perSecond == 0 {
		return
	}
	room := max(float64(d.Size-h.live(d))-b.bytes, 0)
	at := saturating.Add(w.now, max(saturating.Add(duration(room/float64(b.perSecond)*1e9), 1), pause))
	if b.alarm == 0 || at < b.alarm {
		b.alarm = at
		w.at(at, eventMemoryFull, s.index, host)
	}
}

// memoryFull is the time at which the memory of a host may be full of messages.
func (w *world) memoryFull(s *service, host uint32) {
	h, d := &s.hosts[host], &s.def.Heap
	if h.outbox.alarm != w.now {
		return
	}
	h.outbox.alarm = 0
	if h.live(d)+w.buffered(h) > d.Size {
		w.exhaustMemory(s, host)
		return
	}
	w.watchMemory(s, host, time.Millisecond)
}
