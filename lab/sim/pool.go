package sim

import (
	"cmp"
	"time"

	"github.com/lullgo/lull/internal/saturating"
	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// pool is the connections of one process to one host.
type pool struct {
	def         *Pool
	o           *origin
	index       uint32
	host        uint32
	key         uint64 // of the randomness of its connections
	dials       uint64
	open        int             // connections, those being dialled included
	idle        ring            // connections; the one that was given back last at the end
	portsFreeAt []time.Duration // when ports can be used again
	expires     bool            // an event for that is under way

	// With HTTP attempts wait in a line. Tickets of those that have left it are empty.
	line      ring // tickets of all
	undialled ring // tickets of those for which no connection is dialled

	// With SQL chance decides which of those who wait is next.
	waiters []uint32 // jobs that wait
	picks   uint64
	// There, what is dialled for whoever waits is dialled one after the other.
	toDial   int  // connections that are to be dialled; they count as open
	dialling bool // one is being dialled
}

// conn is one connection. Each side may know that it is closed while the other does not.
type conn struct {
	key        uint64 // of its randomness
	gen        uint32 // goes up when the connection has ended, for its process
	pool       uint32
	job        uint32 // the attempt that it carries, plus one, until the service has done with it; while dialling, the one that dials
	jobGen     uint32 // of the one that dials
	knocks     uint8  // how often it was asked for
	state      connState
	accepted   bool // the service counts it among those that are open
	hostDied   bool // silently
	answerTime time.Duration
	since      time.Duration // without work; while dialling, when it was last asked for
}

type connState uint8

const (
	connNone connState = iota // the place of none
	connDialing
	connInBacklog // it waits in the backlog
	connIdle
	connCarrying
	connLeft // the process has closed it
)

// A leg is what an attempt with a connection needs beside its job, in the place of that.
type leg struct {
	conn      uint32 // plus one
	ticket    uint32 // of a pool's line, or its place among the waiters, plus one
	undialled uint32 // its ticket there, plus one
	dial      uint32 // the connection that is dialled for it, plus one
	lost      bool   // the request gets lost
	waits     bool   // or has waited
	there     time.Duration
	since     time.Duration // it has waited
}

const handshake = 1<<16 - 1 // job.hop, of a handshake

// openPools makes the connections that are there at the beginning, as far as the service has room.
func (w *world) openPools(o *origin) {
	n := o.network.Pool.Open
	if !o.pooled || n == 0 {
		return
	}
	for process := range o.processes {
		for host := range o.target.hosts {
			p := w.poolOf(o, uint32(process), uint32(host))
			h := &o.target.hosts[host]
			for range n {
				if limit := o.target.def.Connections.Limit; limit > 0 && h.acceptor.open >= limit {
					break
				}
				ci, c := w.conns.take()
				*c = conn{key: draw.Mix(p.key, p.dials), gen: c.gen, pool: p.index, state: connIdle}
				p.dials++
				p.open++
				p.idle.push(ci)
				w.accepted(h, c)
			}
			w.expireLater(p)
		}
	}
}

func (w *world) poolOf(o *origin, process, host uint32) *pool {
	i := int(process)*len(o.target.hosts) + int(host)
	for len(o.pools) <= i {
		o.pools = append(o.pools, 0)
	}
	if o.pools[i] == 0 {
		p := &pool{def: &o.network.Pool, o: o, index: uint32(len(w.pools)), host: host}
		p.key = draw.Mix(draw.Mix(w.dialKey, uint64(o.index)), uint64(i))
		w.pools = append(w.pools, p)
		o.pools[i] = p.index + 1
	}
	return w.pools[o.pools[i]-1]
}

func (w *world) getConnection(k uint32, j *job, p *pool, l leg) {
	j.state = jobConnecting
	for uint32(len(w.legs)) < w.jobs.used {
		w.legs = append(w.legs, leg{})
	}
	for uint32(len(w.connOfFlight)) < w.flights.used {
		w.connOfFlight = append(w.connOfFlight, 0)
	}
	w.legs[k] = l
	if p.idle.n > 0 {
		ci := p.idle.popBack()
		w.sendOverConnection(ci, w.conns.at(ci), k, j)
		return
	}
	w.rec.count(w.now, &w.rec.conns.Waits)
	w.legs[k].since, w.legs[k].waits = w.now, true
	own := p.room()
	switch {
	case p.def.Kind == HTTP:
		w.legs[k].ticket = w.queueTicket(&p.line, k)
		if !own {
			w.legs[k].undialled = w.queueTicket(&p.undialled, k)
		}
	case !own:
		p.waiters = append(p.waiters, k)
		w.legs[k].ticket = uint32(len(p.waiters))
	}
	if own {
		w.dialFor(p, k, j)
	}
}

// queueTicket puts an attempt into a line, and returns the number of its ticket, plus one.
func (w *world) queueTicket(line *ring, k uint32) uint32 {
	t, v := w.tickets.take()
	*v = k + 1
	line.push(t)
	return t + 1
}

func (w *world) dialFor(p *pool, k uint32, j *job) {
	w.legs[k].dial = w.dial(p, k+1, j.gen) + 1
}

func (p *pool) room() bool { return p.def.Size == 0 || p.open < p.def.Size }

// dial begins a new connection, for an attempt (a job, plus one) or for whoever waits.
func (w *world) dial(p *pool, job, gen uint32) uint32 {
	w.rec.count(w.now, &w.rec.conns.Dials)
	ci, c := w.conns.take()
	*c = conn{key: draw.Mix(p.key, p.dials), gen: c.gen, pool: p.index, job: job, jobGen: gen, state: connDialing}
	p.dials++
	p.open++
	if p.def.Ports > 0 {
		for len(p.portsFreeAt) > 0 && p.portsFreeAt[0] <= w.now {
			p.portsFreeAt = p.portsFreeAt[1:]
		}
		if p.open+len(p.portsFreeAt) > p.def.Ports {
			w.rec.count(w.now, &w.rec.conns.NoPort)
			c.knocks = noPort
			// An event, so that a pool that fails at once needs no more stack than another.
			w.at(w.now, eventDialRefused, c.gen, ci)
			return ci
		}
	}
	w.at(saturating.Add(w.now, cmp.Or(p.def.DialTimeout, 30*time.Second)), eventDialOverdue, c.gen, ci)
	w.requestConnection(ci, c, p, w.now)
	return ci
}

// noPort is conn.knocks of a connection that found no local port.
const noPort = 255

func (w *world) requestConnection(ci uint32, c *conn, p *pool, now time.Duration) {
	c.since = now
	src := draw.From(draw.Mix(c.key, uint64(c.knocks)))
	there := p.o.forward.draw(&src)
	c.answerTime = p.o.forward.draw(&src)
	n := &p.o.network
	if n.Loss > 0 && draw.Unit(src.Uint64()) < n.Loss || n.LossBack > 0 && draw.Unit(src.Uint64()) < n.LossBack {
		w.requestConnectionAgain(ci, c, p)
		return
	}
	w.at(saturating.Add(now, there), eventDial, c.gen, ci)
}

// requestConnectionAgain asks again for a connection, since there was no answer: after 1 s, 2 s, 4 s and so on.
func (w *world) requestConnectionAgain(ci uint32, c *conn, p *pool) {
	const most = 6 // as on Linux
	if c.knocks >= most {
		return // until it is overdue
	}
	c.knocks++
	w.requestConnection(ci, c, p, saturating.Add(c.since, time.Second<<(c.knocks-1)))
}

func (w *world) continueConnection(what int, ci uint32, c *conn) {
	p := w.pools[c.pool]
	switch what {
	case eventDial:
		w.connectionRequested(ci, c, p)
	case eventDialled:
		w.dialSucceeded(ci, c, p)
	case eventDialRefused:
		verdict := verdictRefused
		if c.knocks == noPort {
			verdict = verdictNoPort
		}
		w.dialFailed(ci, c, p, verdict)
	case eventDialOverdue:
		w.dialFailed(ci, c, p, verdictDialTimeout)
	case eventHungUp:
		w.serverCloses(ci, c)
	}
}

func (w *world) dialSucceeded(ci uint32, c *conn, p *pool) {
	k, own := w.dialer(c)
	spare := c.job == 0
	c.job = 0
	c.state = connIdle
	c.gen++ // it is overdue no more
	if own {
		w.takeTicket(k, p)
		w.sendOverConnection(ci, c, k, w.jobs.at(k))
		return
	}
	w.putConnection(ci, c, p)
	if spare {
		p.dialling = false
		w.dialNext(p)
	}
}

// dialer returns the attempt that c was dialled for, if that still waits.
func (w *world) dialer(c *conn) (uint32, bool) {
	if c.job == 0 {
		return 0, false
	}
	k := c.job - 1
	j := w.jobs.at(k)
	return k, j.gen == c.jobGen && j.state == jobConnecting && w.legs[k].conn == 0
}

// takeTicket takes an attempt out of the line, or from those who wait.
func (w *world) takeTicket(k uint32, p *pool) {
	l := &w.legs[k]
	switch {
	case l.ticket == 0:
	case p.def.Kind == HTTP:
		*w.tickets.at(l.ticket - 1) = 0
	default:
		last := p.waiters[len(p.waiters)-1]
		p.waiters[l.ticket-1] = last
		w.legs[last].ticket = l.ticket
		p.waiters = p.waiters[:len(p.waiters)-1]
	}
	if l.undialled != 0 {
		*w.tickets.at(l.undialled - 1) = 0
	}
	l.ticket, l.undialled = 0, 0
}

func (w *world) sendOverConnection(ci uint32, c *conn, k uint32, j *job) {
	l := &w.legs[k]
	if l.waits {
		w.rec.addTime(w.now, &w.rec.conns.Waited, w.now-l.since)
	}
	l.conn = ci + 1
	c.state, c.job = connCarrying, k+1
	w.connOfFlight[j.flight] = ci + 1
	j.state = jobIdle
	switch {
	case l.lost || c.hostDied && w.services[j.service].hosts[j.host].now(w.now).down:
		w.dropJob(k, j) // its caller finds out by its timeout
	default:
		w.at(saturating.Add(w.now, l.there), eventReach, j.gen, k) // even at once: a long line needs no more stack
	}
}

// connectionUnknown reports whether the connection of j, whose request reaches the service, is unknown there.
func (w *world) connectionUnknown(k uint32) bool {
	l := &w.legs[k]
	return l.conn != 0 && !w.conns.at(l.conn-1).accepted
}

// detachJob is the end of a job with a connection, for the service.
func (w *world) detachJob(k uint32) {
	l := &w.legs[k]
	if l.conn == 0 {
		return
	}
	ci := l.conn - 1
	*l = leg{}
	c := w.conns.at(ci)
	c.job = 0
	if c.state != connLeft {
		return
	}
	if c.accepted {
		w.serverCloses(ci, c)
	} else {
		w.endConn(ci, c)
	}
}

// returnConnection gives the connection of flight i back, whose answer has come.
func (w *world) returnConnection(i uint32, verdict int) {
	ci := w.connOfFlight[i]
	if ci == 0 {
		return
	}
	w.connOfFlight[i] = 0
	ci--
	c := w.conns.at(ci)
	p := w.pools[c.pool]
	if verdict == verdictReset || verdict == verdictRefused || !c.accepted || c.hostDied {
		w.rec.count(w.now, &w.rec.conns.Broken)
		w.closeConn(ci, c, p, false)
		return
	}
	w.putConnection(ci, c, p)
}

// putConnection gives a connection to an attempt that waits, or keeps it. With HTTP a pool that keeps none does not hand it
// on either.
func (w *world) putConnection(ci uint32, c *conn, p *pool) {
	if p.def.Kind == SQL || p.def.Idle >= 0 {
		if k, ok := w.nextWaiter(p); ok {
			w.sendOverConnection(ci, c, k, w.jobs.at(k))
			return
		}
	}
	c.state, c.since = connIdle, w.now
	if most := p.def.Idle; most < 0 || most > 0 && p.idle.n >= most {
		w.closeConn(ci, c, p, true)
		return
	}
	p.idle.push(ci)
	w.expireLater(p)
}

// nextWaiter takes the attempt that is to have the next connection out of the line, or from those who wait.
func (w *world) nextWaiter(p *pool) (uint32, bool) {
	if p.def.Kind == HTTP {
		k, ok := w.popTicket(&p.line)
		if ok {
			w.legs[k].ticket = 0
			w.takeTicket(k, p)
		}
		return k, ok
	}
	if len(p.waiters) == 0 {
		return 0, false
	}
	src := draw.From(draw.Mix(p.key, 1<<40+p.picks))
	p.picks++
	k := p.waiters[src.Below(uint64(len(p.waiters)))]
	w.takeTicket(k, p)
	return k, true
}

func (w *world) popTicket(line *ring) (uint32, bool) {
	for line.n > 0 {
		t := line.popFront()
		k := *w.tickets.at(t)
		w.tickets.release(t)
		if k != 0 {
			return k - 1, true
		}
	}
	return 0, false
}

// dialFailed ends the dialling of a connection, and gives the verdict to who waits for it.
func (w *world) dialFailed(ci uint32, c *conn, p *pool, verdict int) {
	k, waits := w.dialer(c)
	if c.job == 0 {
		p.dialling = false
		k, waits = w.nextWaiter(p)
	}
	w.abandonDial(ci, c, p)
	if waits {
		w.takeTicket(k, p)
	}
	w.dialReplacements(p)
	if !waits {
		return
	}
	j := w.jobs.at(k)
	w.rec.addTime(w.now, &w.rec.conns.Waited, w.now-w.legs[k].since)
	i := j.flight
	w.dropJob(k, j)
	f := w.flights.at(i)
	f.gen++
	w.answerArrived(i, f, verdict)
}

func (w *world) abandonDial(ci uint32, c *conn, p *pool) {
	w.rec.count(w.now, &w.rec.conns.Failed)
	p.open--
	c.gen++
	c.job = 0
	if c.accepted { // or it is only half a connection, which leaves nothing behind
		w.keepPort(p)
	}
	inBacklog := c.state == connInBacklog
	c.state = connLeft
	switch {
	case inBacklog: // where it keeps its place until its turn comes
		p.o.target.hosts[p.host].acceptor.waiting--
	case c.accepted:
		w.serverCloses(ci, c)
	default:
		w.endConn(ci, c)
	}
}

// keepPort is what closing costs the process that does it.
func (w *world) keepPort(p *pool) {
	if p.def.Ports > 0 {
		p.portsFreeAt = append(p.portsFreeAt, saturating.Add(w.now, cmp.Or(p.def.TimeWait, time.Minute)))
	}
}

func (w *world) endConn(ci uint32, c *conn) {
	c.state = connNone
	c.gen++
	w.conns.release(ci)
}

// closeConn closes a connection without work, or under an attempt that is over. The process or the
// service closes it first.
func (w *world) closeConn(ci uint32, c *conn, p *pool, process bool) {
	p.open--
	c.gen++
	c.state = connLeft
	if process {
		w.keepPort(p)
	}
	if c.job != 0 && w.jobs.at(c.job-1).state == jobCancelled { // the service knows
		w.legs[c.job-1] = leg{}
		c.job = 0
	}
	switch {
	case !c.accepted:
		if c.job == 0 {
			w.endConn(ci, c)
		}
	case c.job == 0: // with a request under way the service learns of it when that is done
		if c.answerTime > 0 && process {
			w.at(saturating.Add(w.now, c.answerTime), eventHungUp, c.gen, ci)
		} else {
			w.serverCloses(ci, c)
		}
	}
	w.dialReplacements(p)
}

// dialReplacements dials for attempts that wait, as far as there is room. Connections that are being dialled for others make no
// difference.
func (w *world) dialReplacements(p *pool) {
	if p.def.Kind == SQL {
		if n := min(len(p.waiters), p.def.Size-p.open); n > 0 {
			p.open += n
			p.toDial += n
		}
		w.dialNext(p)
		return
	}
	for p.room() {
		k, ok := w.popTicket(&p.undialled)
		if !ok {
			return
		}
		w.legs[k].undialled = 0
		w.dialFor(p, k, w.jobs.at(k))
	}
}

// dialNext dials the next of the connections that are dialled one after the other.
func (w *world) dialNext(p *pool) {
	if p.toDial > 0 && !p.dialling {
		p.dialling = true
		p.toDial--
		p.open-- // dial counts it
		w.dial(p, 0, 0)
	}
}

func (w *world) expireLater(p *pool) {
	d, process := p.idleFor()
	if d == 0 || p.expires || p.idle.n == 0 {
		return
	}
	p.expires = true
	at := saturating.Add(w.conns.at(p.idle.front()).since, d)
	if process && p.def.Kind == SQL {
		at = saturating.Add(w.now, max(d, cleanerRests))
	}
	w.at(at, eventExpireIdle, 0, p.index)
}

// idleFor is how long a connection of p is kept without work, and whether the process closes it.
func (p *pool) idleFor() (d time.Duration, process bool) {
	d, process = p.def.IdleFor, true
	if s := p.o.target.def.Connections.IdleFor; s > 0 && (d == 0 || s < d) {
		d, process = s, false
	}
	return d, process
}

func (w *world) expireIdle(p *pool) {
	d, process := p.idleFor()
	if process && p.def.Kind == SQL {
		w.cleanIdle(p)
		return
	}
	p.expires = false
	for p.idle.n > 0 {
		ci := p.idle.front()
		c := w.conns.at(ci)
		if saturating.Add(c.since, d) > w.now {
			break
		}
		p.idle.popFront()
		w.closeConn(ci, c, p, process)
	}
	w.expireLater(p)
}

// cleanerRests is for how long the cleaner of database/sql rests at least.
const cleanerRests = time.Second

// cleanIdle is a turn of that cleaner. It looks at the connections when the oldest will have had no work for long enough, as
// things are now, and ends when there are none.
func (w *world) cleanIdle(p *pool) {
	if p.open == 0 {
		p.expires = false
		return
	}
	next := p.def.IdleFor
	for p.idle.n > 0 {
		ci := p.idle.front()
		c := w.conns.at(ci)
		left := saturating.Add(c.since, p.def.IdleFor) - w.now
		if left >= 0 {
			next = min(next, left)
			break
		}
		p.idle.popFront()
		w.closeConn(ci, c, p, true)
	}
	w.at(saturating.Add(w.now, max(next, cleanerRests)), eventExpireIdle, 0, p.index)
}

// abandonConnection is the end of an attempt that was given up: it closes its connection, or leaves the line.
// The flight has moved on by one.
func (w *world) abandonConnection(i uint32, f *flight) {
	if ci := w.connOfFlight[i]; ci != 0 {
		w.connOfFlight[i] = 0
		w.rec.count(w.now, &w.rec.conns.Broken)
		c := w.conns.at(ci - 1)
		w.closeConn(ci-1, c, w.pools[c.pool], true)
		return
	}
	if f.job >= w.jobs.used {
		return
	}
	j := w.jobs.at(f.job)
	if j.flight != i || j.flightGen != f.gen-1 || j.state != jobConnecting {
		return
	}
	o := w.origins[f.origin]
	p := w.poolOf(o, f.process, j.host)
	w.rec.addTime(w.now, &w.rec.conns.Waited, w.now-w.legs[f.job].since)
	own := w.legs[f.job].dial
	w.takeTicket(f.job, p)
	w.dropJob(f.job, j)
	if own == 0 || p.def.Kind != SQL {
		return
	}
	if c := w.conns.at(own - 1); c.state == connDialing || c.state == connInBacklog {
		w.abandonDial(own-1, c, p)
		w.dialReplacements(p)
	}
}
