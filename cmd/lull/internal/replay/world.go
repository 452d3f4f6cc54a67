package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/lab/scenario"
	"github.com/lullgo/lull/lab/sim"
)

// A draw is a world with one value of each interval. values are assignments, as for scenario.Set.
type draw struct {
	scenario sim.Scenario
	values   []string
}

// latinHypercube draws n worlds from the intervals of the values (McKay, Beckman and Conover, "A comparison of three methods for
// selecting values of input variables", 1979): each interval is cut into n equal pieces, and each piece is drawn from once, in an
// order of its own. What lies between two positive values is drawn evenly on a logarithmic scale, as rates and times are. A value
// without an interval stays. A draw that is no valid scenario is left out; err is the first reason.
func latinHypercube(s sim.Scenario, all []scenario.Interval, n int, seed uint64) (draws []draw, err error) {
	random := rand.New(rand.NewPCG(seed, 1))
	draws = make([]draw, n)
	for i := range draws {
		draws[i].scenario = s
	}
	for _, v := range all {
		if v.Low == "" || v.Low == v.High {
			continue
		}
		low, high, write, err := ends(v)
		if err != nil {
			return nil, err
		}
		for i, k := range random.Perm(n) {
			at := (float64(k) + random.Float64()) / float64(n)
			x := low + (high-low)*at
			if low > 0 {
				x = low * math.Pow(high/low, at)
			}
			assignment := v.Path + "=" + write(x)
			if err := scenario.Set(&draws[i].scenario, assignment); err != nil {
				return nil, err
			}
			draws[i].values = append(draws[i].values, assignment)
		}
	}
	return slices.DeleteFunc(draws, func(d draw) bool {
		invalid := d.scenario.Validate()
		if err == nil {
			err = invalid
		}
		return invalid != nil
	}), err
}

// ends returns the ends of an interval, and what writes a value between them: a duration such as 95ms, a share such as 0.9%, a
// number such as 1200 or 1.2k, a whole number if both ends are.
func ends(v scenario.Interval) (low, high float64, write func(float64) string, err error) {
	var times [2]time.Duration
	var numbers [2]float64
	for i, text := range []string{v.Low, v.High} {
		form := codec.Plain
		if strings.HasSuffix(text, "%") {
			form = codec.Share
		}
		want, _ := codec.Scalar(text, reflect.ValueOf(&numbers[i]).Elem(), form)
		if want == "" {
			continue
		}
		if want, _ = codec.Scalar(text, reflect.ValueOf(&times[i]).Elem(), codec.Plain); want != "" {
			return 0, 0, nil, fmt.Errorf("learned.values: %s is %q: want a number, a share or a duration such as 1200, 0.9%% or 95ms", v.Path, text)
		}
	}
	low, high = numbers[0], numbers[1]
	whole := low == math.Trunc(low) && high == math.Trunc(high)
	write = func(x float64) string {
		if whole {
			x = math.Round(x)
		}
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	if times != [2]time.Duration{} {
		low, high = float64(times[0]), float64(times[1])
		write = func(x float64) string { return time.Duration(x).String() }
	}
	if low > high {
		err = fmt.Errorf("learned.values: %s is %q to %q: want the lower value first", v.Path, v.Low, v.High)
	}
	return low, high, write, err
}

// fewWorkers is how many workers, and fewProcesses how many processes a smaller world has at least. A queue of fewer workers waits
// longer under the same load (Erlang).
const (
	fewWorkers   = 50
	fewProcesses = 20
)

// smaller returns a world with an nth of the load, the processes and the workers of each host, in which a policy finds what it
// finds in the large one. It reports false if there is none: what cannot be divided, or only with an error of more than 2 %.
func smaller(s sim.Scenario, n int) (sim.Scenario, bool) {
	ok := true
	divide := func(v *int, least int) {
		whole := math.Round(float64(*v) / float64(n))
		if *v > 0 {
			ok = ok && whole >= float64(least) && math.Abs(whole*float64(n)/float64(*v)-1) <= 0.02
			*v = max(int(whole), 1)
		}
	}
	s.Fleets, s.Services = slices.Clone(s.Fleets), slices.Clone(s.Services)
	for i := range s.Fleets {
		f := &s.Fleets[i]
		ok = ok && f.Processes > 0 && (f.Arrivals.Kind == sim.Poisson || f.Arrivals.Kind == sim.Constant) && !f.Link.On
		divide(&f.Processes, fewProcesses)
		f.Arrivals.Rate /= float64(n)
	}
	for i := range s.Services {
		v := &s.Services[i]
		ok = ok && v.Connections.Limit == 0 && v.Heap.Size == 0 && !v.Admission.On && len(v.Calls) == 0
		divide(&v.Workers, fewWorkers)
		divide(&v.Queue.Limit, 1)
		divide(&v.Rate.Burst, 1)
		v.Rate.PerSecond /= float64(n)
		v.Congestion *= time.Duration(n)
	}
	return s, ok && len(s.Topics) == 0 && s.Validate() == nil
}

// flown returns the world for a policy. A policy with an attempt timeout of its own has that, and not the one of the world.
func flown(s sim.Scenario, c sim.Contender) sim.Scenario {
	if c.Policy.AttemptTimeout > 0 {
		s.Fleets = slices.Clone(s.Fleets)
		for i := range s.Fleets {
			s.Fleets[i].AttemptTimeout = 0
		}
	}
	return s
}
