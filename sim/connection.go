package sim

import (
	"cmp"
	"reflect"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
)

// A Pool is the connections that each process has to each host of what it calls. An attempt has a
// connection to itself, as with HTTP/1.1 and databases. An attempt that is given up closes its
// connection, and the next one needs a new one.
//
// The zero Pool is off: connections cost nothing, and there are as many as it takes.
type Pool struct {
	On   bool
	Kind PoolKind
	// Size is how many connections are open at most, those being dialled included. Attempts
	// beyond wait for one. Zero: no limit.
	Size int
	// Open is how many are there at the beginning, without work. Zero: none, so that every first
	// attempt needs a new one.
	Open int
	// Idle is how many connections without work are kept. Zero: all of them. Negative: none; with HTTP
	// none is handed on to an attempt that waits, either.
	Idle int
	// IdleFor is how long one without work is kept. Zero: for good. With SQL it may be twice as long,
	// and at least a second.
	IdleFor time.Duration
	// RoundTrips is how many times the network is crossed to and fro before the first request
	// can be sent. Zero: 1, as with TCP. With TLS 1.3 it is 2.
	RoundTrips int
	// Handshake is the client's own part of the work for a new connection.
	Handshake Distribution
	// DialTimeout is how long dialling takes at most. Zero: 30 s.
	DialTimeout time.Duration
	// Ports is how many local ports a process has for its connections to one host. A
	// connection that the process closes keeps its port for TimeWait longer. Without a port an
	// attempt fails at once. Zero: no limit. (Linux has 28232.)
	Ports int
	// TimeWait is zero for 60 s, as on Linux.
	TimeWait time.Duration
}

// PoolKind is how a pool dials.
type PoolKind uint8

const (
	// HTTP is the way of net/http: an attempt takes what is free first, the connection that is
	// dialled for it or one that another attempt gives back. Dialling goes on when the attempt
	// has been given up. Attempts are served in the order of their arrival.
	HTTP PoolKind = iota
	// SQL is the way of database/sql: an attempt for which a connection is dialled waits for
	// that one, and dialling ends with the attempt. Where the pool is full, attempts are served in no
	// order, and connections in the place of broken ones are dialled one after the other.
	SQL
)

var poolKinds = []string{"http", "sql"}

// String is the kind as in a file, such as "http".
func (k PoolKind) String() string { return choice.Name("unknown", poolKinds, k) }

// MarshalText is String.
func (k PoolKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes what MarshalText gives, in any case. The error names the
// text and what is allowed.
func (k *PoolKind) UnmarshalText(text []byte) error {
	return choice.Unmarshal("PoolKind", poolKinds, k, text)
}

func (p *Pool) dialTimeout() time.Duration { return cmp.Or(p.DialTimeout, 30*time.Second) }
func (p *Pool) timeWait() time.Duration    { return cmp.Or(p.TimeWait, time.Minute) }

// Connections is what each host of a service does about the connections of callers that have a
// [Pool].
type Connections struct {
	// Limit is how many are open at most. More wait in the backlog until one is closed.
	// Zero: no limit.
	Limit int
	// Refuse: those beyond the Limit are refused instead.
	Refuse bool
	// Handshake is the work for each connection. It takes a worker, behind what waits already.
	Handshake Distribution
	// Backlog is how many wait at most for their handshake, and under the Limit. Zero: 4096.
	Backlog int
	// Drop: those beyond the Backlog get no answer, and their callers ask again after 1 s,
	// 2 s, 4 s and so on, as with Linux. Otherwise they are refused.
	Drop bool
	// IdleFor is after how long a connection without work is closed. Zero: never.
	IdleFor time.Duration
}

func (c *Connections) backlog() int { return cmp.Or(c.Backlog, 4096) }

// ConnectionTotals count what happened to connections after the warm-up, over all pools.
type ConnectionTotals struct {
	// Dials that began, and those of them that came to nothing: refused, given up, or without a
	// port.
	Dials, Failed int64
	// NoPort is attempts that failed for want of a local port.
	NoPort int64
	// Waits is attempts that had to wait for a connection, because none was free. Waited is how
	// long all of them waited together, those that got none included.
	Waits  int64
	Waited time.Duration
	// Broken is connections that were closed under an attempt, by its timeout or by the service.
	Broken int64
	// Refused is connections that the service refused, and Dropped those that found no place in
	// the backlog and were not answered.
	Refused, Dropped int64
	// Most is how many connections were open at one host at most.
	Most int
}

func (p *Pool) validate() error {
	var l problem.List
	l.Check(p.On || reflect.ValueOf(*p).IsZero(), "On", p.On, "true for a pool with other settings")
	l.Check(int(p.Kind) < len(poolKinds), "Kind", p.Kind, "http or sql")
	l.Check(p.Size >= 0 && p.Size <= 1<<20, "Size", p.Size, "zero (no limit) to 1048576")
	l.Check(p.Open >= 0 && p.Open <= 1<<20 && (p.Size == 0 || p.Open <= p.Size), "Open", p.Open, "zero (none) to Size")
	l.Check(p.Idle >= -1 && p.Idle <= 1<<20, "Idle", p.Idle, "-1 (none), zero (all) or up to 1048576")
	span(&l, "IdleFor", p.IdleFor)
	l.Check(p.RoundTrips >= 0 && p.RoundTrips <= 100, "RoundTrips", p.RoundTrips, "zero (1) to 100")
	l.In("Handshake", p.Handshake.validate())
	span(&l, "DialTimeout", p.DialTimeout)
	l.Check(p.Ports >= 0 && p.Ports <= 1<<16, "Ports", p.Ports, "zero (no limit) to 65536")
	span(&l, "TimeWait", p.TimeWait)
	return l.Err()
}

func (c *Connections) validate() error {
	var l problem.List
	l.Check(c.Limit >= 0 && c.Limit <= 1<<30, "Limit", c.Limit, "zero (no limit) to 2^30")
	l.Check(!c.Refuse || c.Limit > 0, "Refuse", c.Refuse, "false for a service without a Limit")
	l.In("Handshake", c.Handshake.validate())
	l.Check(c.Backlog >= 0 && c.Backlog <= 1<<30, "Backlog", c.Backlog, "zero (4096) to 2^30")
	span(&l, "IdleFor", c.IdleFor)
	return l.Err()
}
