package sim

import (
	"time"

	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// acceptor is what a host knows of its callers' connections.
type acceptor struct {
	open        int  // accepted, those whose handshake is under way included
	backlog     ring // connections that wait for one of these to close, and those that have gone meanwhile
	waiting     int  // of these, the ones that wait
	handshakes  int  // handshakes that wait for a worker
	refusalWork time.Duration
	refusalsAt  time.Duration // when refusalWork was right
}

func (w *world) connectionRequested(ci uint32, c *conn, p *pool) {
	s := p.o.target
	h := &s.hosts[p.host]
	x := h.now(w.now)
	d := &s.def.Connections
	switch {
	case x.down && x.silent:
		w.requestConnectionAgain(ci, c, p)
	case x.down || h.heap.down > w.now:
		w.at(saturating.Add(w.now, c.answerTime), eventDialRefused, c.gen, ci)
	case d.Limit > 0 && h.acceptor.open >= d.Limit:
		if d.Refuse {
			w.refuseConn(s, h, ci, c)
			return
		}
		if h.acceptor.waiting+h.acceptor.handshakes >= d.backlog() {
			w.overflowBacklog(s, h, ci, c, p)
			return
		}
		h.acceptor.waiting++
		c.state = connInBacklog
		h.acceptor.backlog.push(ci)
	default:
		w.accept(s, h, ci, c, p)
	}
}

// overflowBacklog is what becomes of a connection that the backlog has no room for.
func (w *world) overflowBacklog(s *service, h *host, ci uint32, c *conn, p *pool) {
	if s.def.Connections.Drop {
		w.rec.count(w.now, &w.rec.conns.Dropped)
		w.requestConnectionAgain(ci, c, p)
		return
	}
	w.refuseConn(s, h, ci, c)
}

func (w *world) refuseConn(s *service, h *host, ci uint32, c *conn) {
	w.rec.count(w.now, &w.rec.conns.Refused)
	h.addRefusalWork(s, w.now)
	w.at(saturating.Add(w.now, c.answerTime), eventDialRefused, c.gen, ci)
}

func (w *world) accept(s *service, h *host, ci uint32, c *conn, p *pool) {
	if s.handshakeTime.never {
		w.accepted(h, c)
		w.established(ci, c, p)
		return
	}
	limit := h.now(w.now).workers
	free := limit < 0 || h.busy < limit
	if !free && h.acceptor.waiting+h.acceptor.handshakes >= s.def.Connections.backlog() {
		w.overflowBacklog(s, h, ci, c, p)
		return
	}
	w.accepted(h, c)
	k, j := w.jobs.take()
	*j = job{gen: j.gen, flight: ci, flightGen: c.gen, host: p.host, service: uint16(s.index), origin: p.o.index, hop: handshake, until: never, key: draw.Mix(c.key, 1<<32)}
	if free {
		w.startJob(k, j)
		return
	}
	w.dropCancelled(h)
	h.acceptor.handshakes++
	j.state = jobQueued
	h.queue.push(k)
	h.queue.handshakes++
}

func (w *world) accepted(h *host, c *conn) {
	c.accepted = true
	h.acceptor.open++
	w.rec.conns.Most = max(w.rec.conns.Most, h.acceptor.open)
}

// established sends the process word that its connection is there.
func (w *world) established(ci uint32, c *conn, p *pool) {
	src := draw.From(draw.Mix(c.key, 1<<33))
	at := saturating.Add(w.now, c.answerTime)
	for range p.def.RoundTrips - 1 {
		at = saturating.Add(at, p.o.forward.draw(&src))
		at = saturating.Add(at, p.o.forward.draw(&src))
	}
	w.at(saturating.Add(at, p.o.handshakeTime.draw(&src)), eventDialled, c.gen, ci)
}

// dialerGone reports whether the process has given up on the connection whose handshake j is.
func (w *world) dialerGone(j *job) bool { return w.conns.at(j.flight).gen != j.flightGen }

func (w *world) handshakeDone(k uint32, j *job) {
	s := w.services[j.service]
	h := j.host
	if !w.dialerGone(j) {
		c := w.conns.at(j.flight)
		w.established(j.flight, c, w.pools[c.pool])
	}
	w.dropJob(k, j)
	w.freeWorker(s, h)
}

// serverCloses is the end of a connection for the service, which can accept another.
func (w *world) serverCloses(ci uint32, c *conn) {
	p := w.pools[c.pool]
	s := p.o.target
	h := &s.hosts[p.host]
	c.accepted = false
	h.acceptor.open--
	if c.state == connLeft && c.job == 0 {
		w.endConn(ci, c)
	}
	w.acceptNext(s, h)
}

// acceptNext accepts connections that wait in the backlog, as far as there is room.
func (w *world) acceptNext(s *service, h *host) {
	a := &h.acceptor
	for a.backlog.n > 0 && a.open < s.def.Connections.Limit {
		ci := a.backlog.popFront()
		c := w.conns.at(ci)
		if c.state == connLeft {
			w.endConn(ci, c)
			continue
		}
		a.waiting--
		c.state = connDialing
		w.accept(s, h, ci, c, w.pools[c.pool])
	}
}

// closeConnections closes all connections of a host that has crashed. If it did so silently, the processes
// learn of it when they use them.
func (w *world) closeConnections(s *service, i int, silent bool) {
	h := &s.hosts[i]
	var gone []uint32 // those being dialled
	for h.acceptor.backlog.n > 0 {
		ci := h.acceptor.backlog.popFront()
		if c := w.conns.at(ci); c.state == connLeft {
			w.endConn(ci, c)
		} else {
			c.state = connDialing
			gone = append(gone, ci)
		}
	}
	h.acceptor = acceptor{refusalWork: h.acceptor.refusalWork, refusalsAt: h.acceptor.refusalsAt}
	for ci := range w.conns.used {
		c := w.conns.at(ci)
		if p := w.pools[c.pool]; !c.accepted || p.o.target != s || int(p.host) != i {
			continue
		}
		c.accepted, c.hostDied = false, silent
		switch {
		case c.state == connDialing:
			gone = append(gone, ci)
		case c.state == connLeft && c.job == 0:
			w.endConn(ci, c)
		}
	}
	if silent {
		return
	}
	for _, ci := range gone {
		c := w.conns.at(ci)
		w.at(saturating.Add(w.now, c.answerTime), eventDialRefused, c.gen, ci)
	}
	for _, p := range w.pools {
		if p.o.target != s || int(p.host) != i {
			continue
		}
		for p.idle.n > 0 {
			ci := p.idle.popBack()
			w.closeConn(ci, w.conns.at(ci), p, false)
		}
	}
}
