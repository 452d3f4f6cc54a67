package sim

import (
	"time"

	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// An AttemptEnd is the end of one attempt, as those who make it and those who serve it see it.
type AttemptEnd struct {
	// Caller is the fleet, topic or service that makes it (the name of the called service, if a fleet has none), and Service is
	// who is called.
	Caller, Service string
	Process         int    // of the Caller; 0 if its processes remember nothing of each other's calls and need no number
	Call            uint64 // the same for all attempts of a call
	Number          int    // in its call, from 1
	Host            int    // of the Service; -1 unless Served
	Began, Ended    time.Duration
	// Code is "" for a success, and otherwise that of the verdict: "503", "timeout". It is "canceled" for an attempt that was
	// still in flight when its call ended.
	Code string
	// Served: the request reached the service, which did not refuse the connection.
	Served bool
}

// A ServedEnd is an attempt as a service that writes a log itself sees it: it does not notice that the caller has gone.
type ServedEnd struct {
	Service     string
	Came, Ended time.Duration
	Code        string // "" for a success
}

// An attemptWatch tells Options.Attempt and Options.Served of attempts. A world without one pays one comparison for each edge of an
// attempt.
type attemptWatch struct {
	tell     func(AttemptEnd)
	served   func(ServedEnd)
	inFlight map[uint32]AttemptEnd    // by flight
	came     map[uint32]time.Duration // by job
}

func newAttemptWatch(o Options) *attemptWatch {
	w := &attemptWatch{o.Attempt, o.Served, map[uint32]AttemptEnd{}, map[uint32]time.Duration{}}
	if w.tell == nil {
		w.tell = func(AttemptEnd) {}
	}
	if w.served == nil {
		w.served = func(ServedEnd) {}
	}
	return w
}

// servedSeen tells of an attempt that a service has worked on or turned away. What a crash takes along it does not write down.
func (w *world) servedSeen(s *service, verdict int, came, ended time.Duration) {
	if verdict != verdictRefused && verdict != verdictReset && ended <= w.scenario.Horizon {
		w.watch.served(ServedEnd{s.def.Name, came, ended, w.verdicts[verdict].Code})
	}
}

// watchAttempt begins to watch attempt n of a call.
func (w *world) watchAttempt(i uint32, f *flight, o *origin, n int) {
	w.watch.inFlight[i] = AttemptEnd{Caller: o.name, Service: o.target.def.Name, Process: int(f.process), Call: f.key, Number: n, Host: -1, Began: w.now}
}

// watchArrival notes that the attempt of a flight has reached a host.
func (w *world) watchArrival(i uint32, host int) {
	if a, ok := w.watch.inFlight[i]; ok {
		a.Host, a.Served = host, true
		w.watch.inFlight[i] = a
	}
}

// hostOf returns the host that servePlain chooses.
func (s *service) hostOf(l attemptRandom) int {
	if len(s.hosts) == 1 {
		return 0
	}
	src := draw.From(draw.Mix(l.key, l.n))
	return int(src.Below(uint64(len(s.hosts))))
}

// attemptSeen tells of the end of the attempt of a flight.
func (w *world) attemptSeen(i uint32, verdict int, code string) {
	a, ok := w.watch.inFlight[i]
	if !ok {
		return
	}
	delete(w.watch.inFlight, i)
	if a.Ended, a.Code = w.now, code; verdict == verdictRefused {
		a.Host, a.Served = -1, false
	}
	w.watch.tell(a)
}
