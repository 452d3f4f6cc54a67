// Package observed holds what was measured of a system: package source reads it from logs and metrics, and package estimate
// makes a scenario of it.
package observed

import "time"

// Data is what was measured, of one system and one stretch of time.
type Data struct {
	Series   []*Series
	Problems []Problem
	Sources  []Source
}

// A Side says who measured.
type Side uint8

// The sides.
const (
	Calls    Side = iota // a caller, of calls with all their attempts
	Attempts             // a caller, of single attempts
	Served               // a server, or a proxy before it, of the attempts that it got
)

// A Series is what one place measured of the requests to one service, in steps of equal length. Places that measure the same
// requests (a client and a server) have a series each; alike processes that measure different ones are added up in one.
type Series struct {
	Side    Side
	Service string // who is called, or ""; neither a path nor an address
	Host    string // of the service, if it has several: a name that tells nothing ("host-1"), or ""
	Source  string // the name of the source, for reports
	Start   time.Time
	Step    time.Duration
	Points  []Point // one for each step; a step that nothing is known of is Missing
	// Edges are the upper ends of all bars in Points, in seconds and ascending. The last bar has none: what is longer.
	Edges []float64
	// Exact: times were measured one by one, and Edges are narrow (1 %). Otherwise they are those of a metric.
	Exact bool
	// Resolution is how exactly the times of day are known: a log with whole seconds has 1 s.
	Resolution time.Duration
	// Processes is how many processes measured, 0 if that is unknown.
	Processes int
}

// A Point is one step. Requests are counted in the step in which they ended.
type Point struct {
	Missing bool
	// Began is how many requests began in the step; -1: unknown.
	Began float64
	// Ended is how many ended, by how: "200", "503", "timeout", "refused", "reset", "canceled", "error".
	Ended map[string]*Bars
	// Retries is how many of Began were no first attempts; -1: unknown.
	Retries float64
}

// Bars is a histogram over the Edges of its Series. Counts are of single requests, or interpolated of a metric.
type Bars struct {
	Counts []float64 // one more than Edges; nil: the times are unknown
	N      float64
}

// Bars returns those of an outcome, with so many counts. It adds what is not there.
func (p *Point) Bars(outcome string, counts int) *Bars {
	if p.Ended == nil {
		p.Ended = map[string]*Bars{}
	}
	if p.Ended[outcome] == nil {
		p.Ended[outcome] = &Bars{}
	}
	b := p.Ended[outcome]
	if len(b.Counts) == 0 && counts > 0 {
		b.Counts = make([]float64, counts)
	}
	return b
}

// Add adds a share of more to an outcome.
func (p *Point) Add(outcome string, more *Bars, share float64) {
	b := p.Bars(outcome, len(more.Counts))
	b.N += share * more.N
	for i, n := range more.Counts {
		b.Counts[i] += share * n
	}
}

// A Source is something that was read.
type Source struct {
	Name        string
	Kind        string // "nginx", "prometheus", ...
	Lines, Used int64  // of metrics: samples
	From, To    time.Time
}

// A Problem is a kind of mistake in a source. All are counted, the first is shown.
type Problem struct {
	Source string
	Line   int64 // of the first; 0: it has none
	Text   string
	Count  int64
}

// At returns when point i begins.
func (s *Series) At(i int) time.Time { return s.Start.Add(time.Duration(i) * s.Step) }

// ExactEdges are bars of 1 % from 10 µs to an hour.
var ExactEdges = func() (edges []float64) {
	for e := 1e-5; e < 3600; e *= 1.01 {
		edges = append(edges, e)
	}
	return edges
}()
