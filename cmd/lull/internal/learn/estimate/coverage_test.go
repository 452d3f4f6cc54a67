package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/lab/scenario"
)

// A truth is a value of a made world, by the path or the name under which it is learned.
type truth struct {
	name  string
	value float64
}

// draw makes a world, and what is true of it.
func draw(seed uint64) (m made, all []truth) {
	r := rand.New(rand.NewPCG(seed, 7))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, r.Float64()) }
	rate, mean, sigma := between(30, 300), between(0.004, 0.1), between(0.2, 0.9)
	m = made{seed: seed, length: between(150, 300), most: rate, work: logNormal(mean, sigma), errors: between(0.0005, 0.03), after: between(0.001, 0.02)}
	if r.Float64() < 0.3 {
		m.errors = 0
	}
	all = []truth{
		{"fleets.0.arrivals.rate", rate},
		{"services.0.errors", m.errors},
		{"service time p50", mean * math.Exp(-sigma*sigma/2)},
		{"service time p99", mean * math.Exp(-sigma*sigma/2+2.3263*sigma)},
	}
	from, long := between(0.3, 0.4)*m.length, between(0.08, 0.25)*m.length
	fault := [2]float64{from, from + long}
	said := func(kind string) {
		all = append(all, truth{kind, 0}, truth{"services.0.faults.0.at", from}, truth{"services.0.faults.0.for", long})
	}
	switch r.IntN(6) {
	case 0:
		m.timeout = between(20*mean, 40*mean)
		m.stall = fault
		said("stall")
		all = append(all, truth{"attempt timeout", m.timeout})
	case 1:
		m.erring, m.erringBy = fault, between(0.1, 1)
		said("errors")
		all = append(all, truth{"services.0.faults.0.share", m.erringBy + (1-m.erringBy)*m.errors})
	case 2:
		m.slowing, m.slowBy = fault, between(2.5, 10)
		said("slow-down")
		all = append(all, truth{"services.0.faults.0.share", 1 / m.slowBy})
	case 3: // a stall, after which all that has waited is worked off
		rate = between(200, 300)
		mean = between(0.06, 0.1)
		m.most, m.work = rate, logNormal(mean, sigma)
		all[0].value, all[2].value, all[3].value = rate, mean*math.Exp(-sigma*sigma/2), mean*math.Exp(-sigma*sigma/2+2.3263*sigma)
		m.workers = int(math.Ceil(between(1.4, 1.8) * rate * mean))
		m.stall = [2]float64{from, from + 10}
		long = 10
		said("stall")
		m.length += 60
		all = append(all, truth{"capacity", float64(m.workers) / mean})
	case 4:
		m.down = fault
		said("crash")
	}
	return m, all
}

// lies reports whether a value lies in the interval that a world states; known: it states one.
func (w *World) lies(name string, value float64) (inside, known bool, text string) {
	check := func(low, high string) (bool, bool, string) {
		a, b := parsed(low), parsed(high)
		return value >= a && value <= b, true, fmt.Sprintf("%s is %.6g, and not from %s to %s", name, value, low, high)
	}
	for _, v := range w.Learned.Values {
		if v.Path == name {
			return check(v.Low, v.High)
		}
	}
	for _, v := range w.Learned.Seen {
		if v.What == name && v.Low != "" {
			return check(v.Low, v.High)
		}
	}
	return false, false, name + " is not known"
}

func parsed(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil && text != "0" {
		return d.Seconds()
	}
	var v float64
	var unit string
	fmt.Sscanf(text, "%g%s", &v, &unit)
	if unit == "%" {
		v /= 100
	}
	return v
}

// buckets are those of Prometheus' clients.
var buckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// covered learns worlds, and returns how many values there were by name, and how many lay in their intervals.
func covered(t *testing.T, metrics bool, from, to uint64) (n, inside map[string]int) {
	n, inside = map[string]int{}, map[string]int{}
	for seed := from; seed < to; seed++ {
		m, all := draw(seed)
		if metrics {
			long := m.length * 9
			for _, f := range []*[2]float64{&m.stall, &m.erring, &m.slowing, &m.down} {
				if f[0] > 0 {
					f[0], f[1] = f[0]+m.length*4, f[0]+m.length*4+(f[1]-f[0])*6
				}
			}
			m.length = long
			for i := range all {
				switch all[i].name {
				case "services.0.faults.0.at":
					all[i].value += long / 9 * 4
				case "services.0.faults.0.for":
					all[i].value *= 6
				}
			}
			m.edges, m.step, m.counted = buckets, 15, true
		}
		w, err := Make(m.fly())
		if err != nil {
			t.Fatalf("world %d: %v", seed, err)
		}
		text, err := scenario.FormatLearned(w.Scenario, w.Learned)
		if err == nil {
			_, _, err = scenario.ParseLearned("f", text)
		}
		if err != nil {
			t.Errorf("world %d: %v", seed, err)
		}
		zero, _ := time.Parse(time.RFC3339Nano, w.Learned.Zero)
		for _, v := range all {
			if v.name == "services.0.faults.0.at" {
				v.value -= zero.Sub(noon).Seconds()
			}
			if v.value == 0 && v.name != "services.0.errors" { // a kind
				n["kind"]++
				if f := w.Scenario.Services[0].Faults; len(f) == 1 && f[0].Kind.String() == v.name {
					inside["kind"]++
				} else {
					t.Logf("world %d: %s is learned as %v; %s", seed, v.name, f, w.Happened)
				}
				continue
			}
			ok, known, text := w.lies(v.name, v.value)
			n[v.name]++
			if ok {
				inside[v.name]++
			} else {
				t.Logf("world %d: %s (%v)", seed, text, known)
			}
		}
		if len(all) == 4 && len(w.Scenario.Services[0].Faults) > 0 {
			t.Errorf("world %d: nothing happened, and learned is %v", seed, w.Happened)
		}
	}
	return n, inside
}

// enough checks that of each kind of value, and of all together, such a share lies in the intervals. Of all worlds what happened must be found.
func enough(t *testing.T, n, inside map[string]int, each, together float64) {
	t.Helper()
	all, in := 0, 0
	for name, k := range n {
		t.Logf("%s: %d of %d", name, inside[name], k)
		if float64(inside[name]) < each*float64(k) || name == "kind" && inside[name] < k {
			t.Errorf("%s: only %d of %d", name, inside[name], k)
		}
		all, in = all+k, in+inside[name]
	}
	if float64(in) < together*float64(all) {
		t.Errorf("only %d of %d values lie in their intervals", in, all)
	}
}

// What is true lies in the interval in 95 % or more, in worlds that the estimates were not made for.
func TestCoverage(t *testing.T) {
	t.Parallel()
	n, inside := covered(t, false, 1000, 1024)
	enough(t, n, inside, 0.9, 0.95)
}

func TestCoverageOfMetrics(t *testing.T) {
	t.Parallel()
	n, inside := covered(t, true, 1000, 1003)
	delete(n, "capacity") // it is known where it can be seen: TestCoverage
	enough(t, n, inside, 0.5, 0.9)
}
