package sim

import (
	"strconv"

	"github.com/lullgo/lull/outlier"
	"github.com/lullgo/lull/sim/internal/draw"
)

// visit is where an attempt has gone.
type visit struct {
	set *outlier.Set
	at  outlier.Endpoint
}

// choose chooses the host for the nth attempt of a call, which flight i makes.
func (w *world) choose(i uint32, f *flight, o *origin, n int, src *draw.Source) uint32 {
	if !o.chooses {
		return uint32(src.Below(uint64(len(o.target.hosts))))
	}
	call := i
	if f.slot > 0 && f.slot != ofMessage {
		call = f.parent
	}
	tried := w.itinerary[call]
	if tried == nil {
		tried = &outlier.Tried{}
		w.itinerary[call] = tried
	}
	set := w.setOf(o, f.process)
	w.pickKey, w.picked = draw.Mix(f.key, uint64(n)), 1<<35
	at, ok := set.Pick(w.now, w.pick64, tried)
	if !ok {
		return 0 // never: there is a host
	}
	w.visits[i] = visit{set, at}
	host, _ := strconv.Atoi(at.Key())
	return uint32(host)
}

// pick64 is the randomness of the choice among hosts.
func (w *world) pick64() uint64 {
	w.picked++
	return draw.Mix(w.pickKey, w.picked)
}

// setOf returns what a process knows of the hosts.
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

func (w *world) ejected(c outlier.Change) {
	if c.Kind == outlier.Ejected {
		w.rec.ejection(w.now)
	}
}

// leaves reports how the attempt of flight i ended.
func (w *world) leaves(i uint32, outcome outlier.Outcome) {
	v, ok := w.visits[i]
	if !ok {
		return
	}
	delete(w.visits, i)
	v.set.Done(w.now, v.at, outcome, w.pick64)
}

// outcome is what lullhttp makes of an attempt that ended with a verdict.
func (w *world) outcome(verdict int) outlier.Outcome {
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
