package estimate

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// made is a small world that a test knows all about: requests with one attempt or more, one line of waiting requests, workers.
type made struct {
	seed    uint64
	length  float64 // seconds
	rate    func(at float64) float64
	most    float64 // of rate
	even    bool    // arrivals by a clock
	work    func(r *rand.Rand) float64
	workers int     // 0: as many as it takes
	errors  float64 // share, after errorTime
	after   float64
	timeout float64 // of an attempt; 0: none
	retries int     // after a failure, a second later
	edges   []float64
	step    float64
	calls   bool // the callers were measured, by call, too
	counted bool // by counters: nobody knows what began
	inside  bool // the service was measured, too, which does not see that callers go
	limit   int  // how many wait at most; 0: as many as come

	stall    [2]float64
	erring   [2]float64
	erringBy float64
	slowing  [2]float64
	slowBy   float64
	down     [2]float64
	cold     float64 // times as long afterwards, less and less for 30 s
	brown    [2]float64
	brownBy  float64
}

type event struct {
	at   float64
	what func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, k int) bool { return e[i].at < e[k].at }
func (e events) Swap(i, k int)      { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func in(at float64, span [2]float64) bool { return at >= span[0] && at < span[1] }

// finish returns when work that begins at a time is done.
func (m *made) finish(at, work float64) float64 {
	for {
		speed, next := 1.0, math.Inf(1)
		for _, edge := range []float64{m.stall[0], m.stall[1], m.slowing[0], m.slowing[1]} {
			if edge > at {
				next = min(next, edge)
			}
		}
		if in(at, m.stall) {
			speed = 0
		} else if in(at, m.slowing) {
			speed = 1 / m.slowBy
		}
		if work <= speed*(next-at) {
			return at + work/speed
		}
		work -= speed * (next - at)
		at = next
	}
}

// fly returns what is measured in the world.
func (m *made) fly() *observed.Data {
	r := rand.New(rand.NewPCG(m.seed, 1))
	var queue events
	now := 0.0
	after := func(at float64, what func()) { heap.Push(&queue, event{at, what}) }
	if m.edges == nil {
		m.edges = observed.ExactEdges
	}
	step := time.Duration(m.step * 1e9)
	if step == 0 {
		step = time.Second
	}
	series := func(side observed.Side) *observed.Series {
		s := &observed.Series{Side: side, Start: noon, Step: step, Edges: m.edges, Exact: len(m.edges) > 100, Processes: 1}
		if side == observed.Served {
			s.Processes = 0
		}
		for range int(m.length / step.Seconds()) {
			s.Points = append(s.Points, observed.Point{Ended: map[string]*observed.Bars{}, Retries: -1})
		}
		return s
	}
	served, calls, inside := series(observed.Served), series(observed.Calls), series(observed.Served)
	served.Source, inside.Source = "proxy", "service"
	note := func(s *observed.Series, from, to float64, code string) {
		if i := int(from / step.Seconds()); i < len(s.Points) {
			s.Points[i].Began++
		}
		if i := int(to / step.Seconds()); i < len(s.Points) {
			b := s.Points[i].Ended[code]
			if b == nil {
				b = &observed.Bars{}
				s.Points[i].Ended[code] = b
			}
			addTime(b, s.Edges, to-from)
		}
	}
	type attempt struct {
		from float64
		gone bool
	}
	busy := 0
	var waiting []*attempt
	var start func(a *attempt, end func(ok bool))
	ends := map[*attempt]func(ok bool){}
	free := func() {
		busy--
		for len(waiting) > 0 {
			left := m.workers
			if in(now, m.brown) {
				left = int(float64(m.workers) * m.brownBy)
			}
			if m.workers > 0 && busy >= left {
				return
			}
			a := waiting[0]
			waiting = waiting[1:]
			start(a, ends[a])
		}
	}
	start = func(a *attempt, end func(ok bool)) {
		busy++
		work := m.work(r)
		if m.cold > 0 && now > m.down[1] {
			work *= 1 + (m.cold-1)*max(0, 1-(now-m.down[1])/30)
		}
		after(m.finish(now, work), func() {
			if !a.gone {
				a.gone = true
				note(served, a.from, now, "200")
				end(true)
			}
			note(inside, a.from, now, "200")
			free()
		})
	}
	var try func(began float64, left int)
	try = func(began float64, left int) {
		a := &attempt{from: now}
		end := func(ok bool) {
			if !ok && left > 0 {
				after(now+1, func() { try(began, left-1) })
				return
			}
			code := "200"
			if !ok {
				code = "error"
			}
			note(calls, began, now, code)
		}
		ends[a] = end
		if m.timeout > 0 {
			after(now+m.timeout, func() {
				if !a.gone {
					a.gone = true
					note(served, a.from, now, "499")
					end(false)
				}
			})
		}
		quick := func(code string, by float64) {
			after(now+by, func() {
				if !a.gone {
					a.gone = true
					note(served, a.from, now, code)
					end(false)
				}
			})
		}
		limit := m.workers
		if in(now, m.brown) {
			limit = int(float64(m.workers) * m.brownBy)
		}
		switch {
		case in(now, m.down):
			quick("502", 0.001)
		case in(now, m.erring) && r.Float64() < m.erringBy:
			quick("503", 0.002)
		case r.Float64() < m.errors:
			quick("500", m.after)
		case m.limit > 0 && len(waiting) >= m.limit:
			note(inside, now, now+0.001, "503")
			quick("503", 0.001)
		case m.workers > 0 && busy >= limit:
			waiting = append(waiting, a)
		default:
			start(a, end)
		}
	}
	var arrive func()
	arrive = func() {
		gap := r.ExpFloat64() / m.most
		if m.even {
			gap = 1 / m.most
		}
		if now+gap > m.length {
			return
		}
		after(now+gap, func() {
			if m.rate == nil || r.Float64() < m.rate(now)/m.most {
				try(now, m.retries)
			}
			arrive()
		})
	}
	arrive()
	for _, edge := range []float64{m.brown[1]} { // workers come back
		if edge > 0 {
			after(edge, func() { busy++; free() })
		}
	}
	for len(queue) > 0 {
		e := heap.Pop(&queue).(event)
		now = e.at
		e.what()
	}
	if m.counted {
		for i := range served.Points {
			served.Points[i].Began, calls.Points[i].Began = -1, -1
		}
	}
	d := &observed.Data{Series: []*observed.Series{served}, Sources: []observed.Source{{Kind: "made"}}}
	if m.inside {
		d.Series = append(d.Series, inside)
	}
	if m.calls {
		d.Series = append(d.Series, calls)
	}
	return d
}

// addTime adds a time, in seconds.
func addTime(b *observed.Bars, edges []float64, seconds float64) {
	if b.Counts == nil {
		b.Counts = make([]float64, len(edges)+1)
	}
	i, _ := slices.BinarySearch(edges, seconds)
	b.Counts[i]++
	b.N++
}
