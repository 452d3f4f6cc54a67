package sim

import (
	"testing"
	"time"

	"github.com/lullgo/lull"
)

// tied is a hundred processes on two hosts of front that keep connections to back, which crashes
// at 10 s for the given time. While a connection is down, 1 kB of messages a second wait.
func tied(down time.Duration, memory int) Scenario {
	return Scenario{
		Horizon: time.Minute,
		Services: []Service{
			{Name: "back", Time: fixed(millisecond), Faults: []Fault{{Kind: Crash, At: 10 * second, For: down}}},
			{Name: "front", Hosts: 2, Heap: Heap{Size: memory, Restart: 5 * second}},
		},
		Fleets: []Fleet{{
			Calls: "back", Processes: 100, Link: Link{On: true, From: "front", PerSecond: 1000},
			Reload: Reload{Share: 1, After: fixed(second), Times: 255},
		}},
	}
}

// All lose their connections once, and dial once a second until there is an answer.
func TestLinksAreLostAndDialled(t *testing.T) {
	r := play(t, tied(9500*millisecond, 1e9), once())
	want(t, "connections lost", r.Totals.Disconnects, 100)
	want(t, "calls that succeeded", r.Totals.Succeeded, 100)
	want(t, "calls", r.Totals.Calls, 1100) // at 10 s, 11 s, ... 20 s
	// 50 processes on each host, for 10 s and a millisecond
	if got := r.Links.Most; got < 500_000 || got > 500_100 {
		t.Errorf("%d bytes waited", got)
	}
	want(t, "dropped", r.Links.Dropped, 0)
	want(t, "lost", r.Links.Lost, 0)
	want(t, "crashes", r.Totals.OutOfMemory, 0)
}

// A buffer holds no more than its size. The rest is dropped, and counted.
func TestBuffersAreBounded(t *testing.T) {
	s := tied(9500*millisecond, 1e9)
	s.Fleets[0].Link.Buffer = 4000
	r := play(t, s, once())
	want(t, "bytes that waited", r.Links.Most, 50*4000)
	if got := r.Links.Dropped; got < 100*6000 || got > 100*6002 {
		t.Errorf("%d bytes were dropped", got)
	}
	want(t, "crashes", r.Totals.OutOfMemory, 0)
}

// A host whose memory is full of messages crashes, loses them, and has its processes dial anew when
// it is up again. With a buffer that is small enough it does not.
func TestMessagesFillTheMemory(t *testing.T) {
	s := tied(9500*millisecond, 250_000) // enough for 5 s
	r := play(t, s, once())
	want(t, "crashes", r.Totals.OutOfMemory, 2) // at 15 s; when they are up again, so is back
	if got := r.Links.Lost; got < 500_000 || got > 500_100 {
		t.Errorf("%d bytes are lost", got)
	}
	want(t, "connections lost", r.Totals.Disconnects, 100)
	want(t, "connected again", r.Totals.Succeeded, 100)
	s.Fleets[0].Link.Buffer = 5000
	r = play(t, s, once())
	want(t, "crashes", r.Totals.OutOfMemory, 0)
}

// A process whose host is up again dials once, also where its connection is to be lost at that moment.
func TestAProcessDialsOnceAfterARestart(t *testing.T) {
	s := Scenario{
		Horizon:  16500 * millisecond,
		Services: []Service{{Name: "back", Time: fixed(millisecond)}, {Name: "front", Faults: []Fault{{Kind: Crash, At: 10 * second, For: 5 * second}}}},
		Fleets: []Fleet{{
			Calls: "back", Link: Link{On: true, From: "front"}, Arrivals: Arrivals{Kind: Constant, Rate: 1},
			Network: Network{Latency: fixed(500 * millisecond)},
		}},
	}
	w, _ := playWorld(t, s, Contender{Policy: once()}, Options{})
	want(t, "connections", w.services[0].hosts[0].links, 1)
	linksAgree(t, w)
}

// The clients of a host that crashes lose their connections, too.
func TestACrashIsHandedOn(t *testing.T) {
	s := tied(9500*millisecond, 300_000)
	s.Fleets = append(s.Fleets, Fleet{Name: "clients", Calls: "front", Processes: 1000, Link: Link{On: true}, Redial: true})
	r := play(t, s, once())
	want(t, "crashes", r.Totals.OutOfMemory, 2)
	want(t, "clients that lost their connection", r.Fleets[1].Totals.Disconnects, 1000)
	want(t, "that are connected again", r.Fleets[1].Totals.Succeeded, 1000)
}

// Connections that are lost one by one are arrivals. Who has lost one loses no other meanwhile.
func TestLinksAreLostOneByOne(t *testing.T) {
	s := tied(second, 1e9)
	s.Services[0].Faults = nil
	s.Fleets[0].Arrivals = Arrivals{Kind: Constant, Rate: 10}
	r := play(t, s, once())
	want(t, "calls", r.Totals.Calls, 599)
	want(t, "connections lost", r.Totals.Disconnects, 599)
}

// storm is the scenario discord-2017. Its session hosts have no memory in use at rest, and that much less.
func storm() Scenario {
	heap := func(room, restart int) Heap {
		return Heap{Size: room, PerAttempt: 200_000, PerConnection: 10_000, Restart: time.Duration(restart) * second}
	}
	hosts := func(name string, n int, h Heap) Service {
		return Service{Name: name, Hosts: n, Workers: 1, Queue: Queue{Limit: 5000}, Time: fixed(5 * millisecond), Heap: h}
	}
	s := Scenario{Horizon: 150 * second, Services: []Service{hosts("presence", 3, heap(300_000_000, 10)), hosts("sessions", 10, heap(50_000_000, 20))}}
	s.Services[0].Heap.PerConnection, s.Services[1].Heap.PerAttempt = 0, 10_000
	s.Services[0].Faults = []Fault{{Kind: Crash, At: 20 * second, For: 10 * second, Hosts: 1}}
	for _, f := range []Fleet{{Name: "links", Calls: "presence", Link: Link{From: "sessions", PerSecond: 1000}}, {Name: "clients", Calls: "sessions"}} {
		f.Link.On, f.Processes, f.Arrivals = true, 10_000, Arrivals{Rate: 20}
		f.AttemptTimeout, f.Reload = second, Reload{Share: 1, After: fixed(second), Times: 255}
		s.Fleets = append(s.Fleets, f)
	}
	return s
}

// A host of presence is down for 10 s. Processes that dial at once keep presence down for good, the
// messages that wait crash the hosts of sessions, and their clients come back all together. With
// package redial and the zero policy there is no second storm: no host of sessions crashes, and no
// client loses a connection but one by one.
func TestTheSecondStorm(t *testing.T) {
	kinds := []bool{true}
	if long {
		kinds = []bool{false, true} // those that dial at once make millions of dials
	}
	alone := int64(20 * 150 * 1.1) // connections that are lost one by one
	for _, redial := range kinds {
		s, p := storm(), retrying(4, 0)
		if redial {
			s.Fleets[0].Redial, s.Fleets[1].Redial, p = true, true, lull.Policy{}
		}
		r := play(t, s, p)
		crashes, clients := r.Totals.OutOfMemory, r.Fleets[1].Totals.Disconnects
		if redial != (clients < alone) || redial != (r.Links.Lost == 0) || redial && crashes > 0 || redial != r.Recovery.Recovered {
			t.Errorf("redial %v: %d crashes for want of memory, %d clients lost their connections, messages of %d bytes are lost; %+v", redial, crashes, clients, r.Links.Lost, r.Recovery)
		}
	}
}
