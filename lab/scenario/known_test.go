package scenario

import (
	"math"
	"testing"
	"time"
)

func TestWhatIsKnown(t *testing.T) {
	l := Learned{
		Values: []Interval{{Path: "services.0.errors", Low: "0.9%", High: "1.2%"}, {Path: "fleets.0.arrivals.rate", Low: "1,100", High: "1200"},
			{Path: "services.0.time"}, {Path: "services.0.faults.0.at", Low: "19s", High: "21s"}},
		Unknown: []Question{{Path: "services.0.workers", Ask: "How many?", Needs: "a load test"}, {Path: "fleets.0.processes", Ask: "How many call?"}},
		Seen: []Fact{{What: "attempt timeout", Low: "990ms", High: "1.01s"}, {What: "deadline of calls", Low: "1.96s", High: "277777h46m40s"},
			{What: "timeout of the proxy", By: "not known"}},
	}
	for path, want := range map[string][2]float64{"services.0.errors": {0.009, 0.012}, "fleets.0.arrivals.rate": {1100, 1200}, "services.0.time": {}, "services.0.faults.0.at": {}, "x": {}} {
		low, high, ok := l.Interval(path)
		if ok != (want != [2]float64{}) || ok && math.Abs(low-want[0])+math.Abs(high-want[1]) > 1e-9 {
			t.Errorf("%s: %v to %v, %v", path, low, high, ok)
		}
	}
	for path, want := range map[string]string{"services.0.workers": "How many? (it takes a load test)", "fleets.0.processes": "How many call?", "services.0.errors": ""} {
		if got := l.Asks(path); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	// The middle; of a time without an upper bound the lower one; of what is not known nothing.
	for what, want := range map[string]time.Duration{"attempt timeout": time.Second, "deadline of calls": 2 * time.Second, "timeout of the proxy": 0, "x": 0} {
		if got := l.Time(what); got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
