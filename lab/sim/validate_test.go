package sim

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/outlier"
	"github.com/lullgo/lull/server/admission"
)

// whole is a scenario that uses every kind of part.
func whole() Scenario {
	return Scenario{
		Horizon: time.Minute,
		Services: []Service{
			{Name: "api", Workers: 1, Calls: []Hop{{Service: "b"}}, Faults: []Fault{{At: time.Second, For: time.Second}}},
			{Name: "b"},
		},
		Fleets: []Fleet{{Calls: "api", Arrivals: Arrivals{Rate: 1, Ramp: []RampPoint{{time.Second, 1}}}}},
		Topics: []Topic{{
			Name: "orders", Calls: "api", Arrivals: Arrivals{Rate: 1, Ramp: []RampPoint{{time.Second, 1}}},
			Consumers: Consumers{Processes: 2, Kills: []Kill{{At: time.Second, For: time.Second}}},
		}},
	}
}

const second = time.Second

// The type of a field decides which values are wrong in it, except for these fields. The
// paths are without indices. Nil: any value will do.
var wrong = map[string][]any{
	"Name": nil, "Title": nil, "Teaches": nil, "Source": nil,
	"Horizon": {time.Duration(0), -second, century + 1},
	"Step":    {-second, time.Duration(1)}, // that is too many
	"Window":  {-second, time.Duration(1)},
	"Warmup":  {-second, time.Minute},

	"Services.Name":               {""},
	"Services.CancelWork":         nil,
	"Services.Deduplicates":       nil,
	"Services.Contention":         {true}, // with workers
	"Services.Congestion":         {-second, time.Hour + 1},
	"Services.Connections.Refuse": {true}, // without a limit
	"Services.Connections.Drop":   nil,
	"Services.Queue.DropExpired":  nil, "Services.Queue.DontRetry": nil,
	"Services.Admission.On": nil, "Services.Admission.NoDeadlines": nil,
	"Services.Admission.Config.MaxWait":     nil, // negative: nobody waits
	"Services.Admission.Config.PressedWait": {-second},
	"Services.Admission.Config.RetryRatio":  {math.NaN(), math.Inf(1), 11.0},
	"Services.Rate.Burst":                   {-1},
	"Services.Calls.Service":                {"", "nobody", "api"},
	"Services.Calls.Deadline":               nil,
	"Services.Calls.OneLayer":               nil,
	"Services.Calls.Policy":                 nil, // looked up in a run
	"Services.Faults.At":                    {-second, time.Minute + 1},
	"Services.Faults.For":                   {time.Duration(0), -second},
	"Services.Faults.Every":                 {-second, time.Duration(1), second - 1},
	"Services.Faults.Hosts":                 {-1, 2},
	"Services.Faults.Cold":                  {-1.0, 0.5, math.NaN(), math.Inf(1), 2e6},
	"Services.Faults.DontRetry":             nil,
	"Services.Calls.Cache.Cold":             {true},
	"Services.Heap.Live":                    {-1, 1},
	"Services.Faults.Silent":                {true}, // of what is no crash

	"Fleets.Network.Pool.On":                nil,
	"Fleets.Network.Pool.Idle":              {-2, math.MaxInt},
	"Services.Calls.Network.Pool.On":        nil,
	"Services.Calls.Network.Pool.Idle":      {-2, math.MaxInt},
	"Topics.Consumers.Network.Pool.On":      nil,
	"Topics.Consumers.Network.Pool.Idle":    {-2, math.MaxInt},
	"Fleets.Network.Endpoints.On":           nil,
	"Services.Calls.Network.Endpoints.On":   nil,
	"Topics.Consumers.Network.Endpoints.On": nil,

	"Fleets.Name": nil, "Fleets.NotIdempotent": nil, "Fleets.Policy": nil, "Fleets.Redial": nil,
	"Fleets.Link.On": nil, "Fleets.Link.From": {"nobody", "api"},
	"Fleets.Calls":               {"", "nobody"},
	"Fleets.Keyed":               {true}, // of what is idempotent
	"Fleets.Reload.Times":        {-1, 256},
	"Fleets.Arrivals.Kind":       {ArrivalKind(5)},
	"Fleets.Arrivals.Rate":       {0.0, -1.0, math.NaN(), math.Inf(1), 2e10},
	"Fleets.Arrivals.Every":      {second, -second}, // of what is not periodic
	"Fleets.Arrivals.Think.Mean": {second, -second}, // of what is not closed
	"Fleets.Arrivals.Ramp.At":    {-second},

	"Topics.Name": {""}, "Topics.Policy": nil,
	"Topics.Calls":                     {"", "nobody"},
	"Topics.Arrivals.Kind":             {AtOnce, Periodic, Closed, ArrivalKind(5)},
	"Topics.Arrivals.Rate":             {0.0, -1.0, math.NaN(), math.Inf(1), 2e10},
	"Topics.Arrivals.Every":            {second, -second},
	"Topics.Arrivals.Think.Mean":       {second, -second},
	"Topics.Arrivals.Ramp.At":          {-second},
	"Topics.Poison.Kills":              nil,
	"Topics.Broker.CountDefers":        nil,
	"Topics.Broker.FixedLeases":        nil,
	"Topics.Consumers.Wary":            nil,
	"Topics.Consumers.Lease":           {-second, millisecond, 13 * time.Hour},
	"Topics.Consumers.Kills.For":       {time.Duration(0), -second, century + 1},
	"Topics.Consumers.Kills.At":        {-second, time.Minute + 1},
	"Topics.Consumers.Processes":       {-1, 1<<16 + 1},
	"Topics.Consumers.Quick":           {-1, 11},
	"Topics.Consumers.Kills.Processes": {-1, 3},
}

// byType returns values that are wrong in a field of a type.
func byType(f reflect.Value) []any {
	switch f.Interface().(type) {
	case time.Duration:
		return []any{-second, time.Duration(math.MaxInt64)}
	case float64:
		return []any{-1.0, math.NaN(), math.Inf(1), math.Inf(-1), 1e300}
	case int:
		return []any{-1, math.MaxInt}
	case Order:
		return []any{Order(2)}
	case PoolKind:
		return []any{PoolKind(2)}
	case FaultKind:
		return []any{FaultKind(6)}
	case DistributionKind:
		return []any{DistributionKind(7)}
	}
	return nil
}

// Every field of a scenario has a wrong value, or is known to have none; and a
// wrong value gives a problem that names the field. A new field fails here until
// it is looked at.
func TestValidateLooksAtEveryField(t *testing.T) {
	seen := map[string]bool{}
	var walk func(v reflect.Value, path string, set func(reflect.Value) reflect.Value, make func() *Scenario)
	walk = func(v reflect.Value, path string, at func(reflect.Value) reflect.Value, fresh func() *Scenario) {
		switch {
		case v.Type() == reflect.TypeFor[outlier.Config](): // package outlier's own tests look at it
			return
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				name := v.Type().Field(i).Name
				walk(v.Field(i), strings.TrimPrefix(path+"."+name, "."), func(s reflect.Value) reflect.Value { return at(s).Field(i) }, fresh)
			}
			return
		case v.Kind() == reflect.Slice:
			if v.Len() == 0 { // the histogram's
				v = reflect.MakeSlice(v.Type(), 1, 1)
				old := at
				at = func(s reflect.Value) reflect.Value {
					if l := old(s); l.Len() == 0 {
						l.Set(reflect.MakeSlice(l.Type(), 1, 1))
					}
					return old(s)
				}
			}
			walk(v.Index(0), path+"[0]", func(s reflect.Value) reflect.Value { return at(s).Index(0) }, fresh)
			return
		}
		key := strings.ReplaceAll(path, "[0]", "")
		seen[key] = true
		values, listed := wrong[key]
		if !listed {
			if values = byType(v); values == nil {
				t.Errorf("%s (%v): nothing is known of what may stand there", path, v.Type())
			}
		}
		for _, bad := range values {
			s := fresh()
			at(reflect.ValueOf(s).Elem()).Set(reflect.ValueOf(bad))
			err := s.Validate()
			if !slices.ContainsFunc(problem.Fields(err), func(f string) bool {
				return f == path || strings.HasPrefix(path, f+".") || strings.HasPrefix(path, f+"[") // the whole part is wrong
			}) {
				t.Errorf("%s = %v: %v", path, bad, err)
			}
			var p problem.Problem
			if errors.As(err, &p) && (p.Allowed == "" || p.Field == "") {
				t.Errorf("%s = %v: %v", path, bad, err)
			}
		}
	}
	s := whole()
	must.Succeed(s.Validate())
	walk(reflect.ValueOf(s), "", func(v reflect.Value) reflect.Value { return v }, func() *Scenario { s := whole(); return &s })
	for key := range wrong {
		if !seen[key] {
			t.Errorf("%s: there is no such field", key)
		}
	}
}

// What is wrong only together with something else.
func TestValidateTogether(t *testing.T) {
	for _, c := range []struct {
		change func(*Scenario)
		field  string
	}{
		{func(s *Scenario) { s.Services, s.Fleets, s.Topics = nil, nil, nil }, "Services Fleets"},
		{func(s *Scenario) { s.Services[0].Name = "b" }, "Services[1].Name"},
		{func(s *Scenario) { s.Fleets[0].Arrivals = Arrivals{Kind: AtOnce, Rate: 1} }, "Fleets[0].Arrivals.Rate"},
		{func(s *Scenario) { s.Fleets[0].Arrivals = Arrivals{Kind: Periodic} }, "Fleets[0].Arrivals.Every"},
		{func(s *Scenario) { s.Fleets[0].Arrivals = Arrivals{Kind: Closed} }, "Fleets[0].Arrivals.Think"},
		{func(s *Scenario) { s.Fleets[0].Arrivals.Kind, s.Fleets[0].Arrivals.Rate = AtOnce, 0 }, "Fleets[0].Arrivals.Ramp"},
		{func(s *Scenario) { s.Services[0].Calls, s.Services = nil, s.Services[:1] }, ""},
		{func(s *Scenario) { s.Services[1].Queue.Limit = 1 }, "Services[1].Queue.Limit"},
		{func(s *Scenario) { s.Services[1].ErrorCost = 0.01 }, "Services[1].ErrorCost"}, // it has no workers
		{func(s *Scenario) { s.Services[1].Admission.Config.MaxWait = -1 }, ""},
		{func(s *Scenario) {
			s.Services[1].Admission = Admission{On: true, Config: admission.Config{MaxWait: second, PressedWait: second + 1}}
		}, "Services[1].Admission.Config.PressedWait"},
		{func(s *Scenario) { s.Services[1].Calls = []Hop{{Service: "api"}} }, "Services[0].Calls"},
		{func(s *Scenario) { s.Services[1].Calls = []Hop{{Service: "b"}} }, "Services[0].Calls"},
		{func(s *Scenario) { s.Services[1].Time = Distribution{Kind: LogNormal} }, "Services[1].Time.Mean"},
		{func(s *Scenario) { s.Services[1].Time = Distribution{Kind: Histogram} }, "Services[1].Time.Bars"},
		{func(s *Scenario) { s.Services[1].Time = Distribution{Kind: Uniform, Min: 2, Max: 1} }, "Services[1].Time.Max"},
		{func(s *Scenario) { s.Services[1].Time.Bars = []Bar{{1, 0}, {2, 0}} }, "Services[1].Time.Bars"},
		{func(s *Scenario) { s.Services[1].Time.Bars = []Bar{{1, math.MaxFloat64}, {2, math.MaxFloat64}} }, "Services[1].Time.Bars[0].Weight"},
		{func(s *Scenario) { s.Services[1].Time.Bars = []Bar{{2, 1}, {2, 1}} }, "Services[1].Time.Bars[1].UpTo"},
		{func(s *Scenario) { s.Fleets[0].Arrivals.Ramp = []RampPoint{{2, 1}, {1, 1}} }, "Fleets[0].Arrivals.Ramp[1].At"},
		{func(s *Scenario) { s.Fleets[0].Arrivals.Ramp = make([]RampPoint, 1001) }, "Fleets[0].Arrivals.Ramp"},
		{func(s *Scenario) { s.Fleets[0].Arrivals = Arrivals{Kind: Periodic, Every: 1, Within: 2} }, "Fleets[0].Arrivals.Within"},
		{func(s *Scenario) {
			s.Fleets[0].Arrivals = Arrivals{Kind: AtOnce, Each: 1 << 20}
			s.Fleets[0].Processes = 1 << 20
		}, "Fleets[0].Arrivals.Each"},
		{func(s *Scenario) { s.Fleets[0].Redial, s.Fleets[0].Arrivals.Each = true, 2 }, "Fleets[0].Redial"},
		{func(s *Scenario) {
			s.Fleets[0].Redial, s.Fleets[0].Arrivals = true, Arrivals{Kind: Closed, Think: fixed(second)}
		}, "Fleets[0].Redial"},
		{func(s *Scenario) { s.Fleets[0].Link.On, s.Fleets[0].Arrivals.Each = true, 2 }, "Fleets[0].Link.On"},
		{func(s *Scenario) { s.Fleets[0].Link = Link{On: true, From: "api"} }, "Fleets[0].Link.From"},
		{func(s *Scenario) { s.Fleets[0].Link = Link{On: true, From: "b", PerSecond: 1} }, "Fleets[0].Link.PerSecond"},
		{func(s *Scenario) { s.Fleets[0].Link = Link{On: true, Buffer: 1} }, "Fleets[0].Link.Buffer"},
		{func(s *Scenario) {
			s.Fleets[0].Link.On, s.Services[0].Faults[0].Kind, s.Services[0].Faults[0].Silent = true, Crash, true
		}, "Fleets[0].Link.On"},
		{func(s *Scenario) { s.Fleets[0].Network.Pool = Pool{Size: 3} }, "Fleets[0].Network.Pool.On"},
		{func(s *Scenario) {
			s.Fleets[0].Network.Endpoints = Endpoints{On: true, Config: outlier.Config{MaxEjected: 101}}
		}, "Fleets[0].Network.Endpoints.Config.MaxEjected"},
		{func(s *Scenario) { s.Services[0].Calls = make([]Hop, 1001) }, "Services[0].Calls"},
		{func(s *Scenario) { s.Services[0].Faults = make([]Fault, 1001) }, "Services[0].Faults"},
		{func(s *Scenario) { s.Services[0].Faults[0] = Fault{For: 1, Every: time.Minute / 65535} }, ""},
		{func(s *Scenario) {
			s.Services[0].Faults = slices.Repeat([]Fault{{For: 1, Every: time.Minute / 40000}}, 2)
		}, "Services[0].Faults"},
		{func(s *Scenario) {
			s.Services[0].Faults[0], s.Services[0].Hosts = (Fault{For: 1, Every: time.Minute / 65530}), 257
		}, "Services[0].Faults"},
	} {
		s := whole()
		c.change(&s)
		if got := strings.Join(problem.Fields(s.Validate()), " "); got != c.field && !strings.HasPrefix(got, c.field+" ") || c.field == "" && got != "" {
			t.Errorf("problems in %q, want %q", got, c.field)
		}
	}
}

func TestNamesInMessages(t *testing.T) {
	s := whole()
	s.Fleets[0].Calls = "apy"
	const want = `Fleets[0].Calls is "apy": want the name of a service, api, b`
	if err := s.Validate(); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	for i := range 20 {
		s.Services = append(s.Services, Service{Name: fmt.Sprint("s", i)})
	}
	const short = `Fleets[0].Calls is "apy": want the name of a service`
	if err := s.Validate(); err == nil || err.Error() != short {
		t.Errorf("%v\nwant %s", err, short)
	}
}

// A file of nonsense is refused without looking at all of it; what is left to look
// at is looked at once.
func TestValidateIsShortWithMany(t *testing.T) {
	s := whole()
	s.Fleets = make([]Fleet, 1001)
	want(t, "problems", len(problem.Fields(s.Validate())), 1)
	s.Services = make([]Service, 100_000)
	want(t, "problems", len(problem.Fields(s.Validate())), 2)
	s = Scenario{Horizon: second}
	for i := range 1000 {
		s.Services = append(s.Services, Service{Name: strings.Repeat("n", 1000) + fmt.Sprint(i), Calls: slices.Repeat([]Hop{{Service: "?"}}, 100)})
		s.Fleets = append(s.Fleets, Fleet{Calls: "?", Arrivals: Arrivals{Rate: 1}})
	}
	l := problem.Fields(s.Validate())
	want(t, "problems", len(l), 101_000)
}

// The longest durations that a scenario may have, everywhere at once: nothing overflows into
// the past.
func TestLongestDurations(t *testing.T) {
	long := Distribution{Kind: Uniform, Min: century, Max: century}
	for _, workers := range []int{0, 1} {
		s := Scenario{
			Horizon: century,
			Services: []Service{{
				Name: "api", Workers: workers, Time: long, ErrorTime: century, Congestion: time.Hour,
				Rate:   Rate{PerSecond: 1e-300, Burst: math.MaxInt, RetryAfter: century},
				Faults: []Fault{{Kind: Crash, At: 1, For: never, Every: never, Warmup: century, After: century}, {Kind: Errors, At: century - 1, For: never, Share: 1}},
			}},
			Fleets: []Fleet{{
				Calls: "api", AttemptTimeout: century, Deadline: century, Network: Network{Latency: long},
				Reload: Reload{Share: 1, Times: 1, After: long}, Arrivals: Arrivals{Kind: Periodic, At: century - second, Every: never, Within: 1},
			}},
		}
		r := play(t, s, retrying(3, 0))
		want(t, "calls", r.Totals.Calls, 1)
		want(t, "unfinished", r.Totals.Unfinished, 1)
		s.Services[0].Faults, s.Services[0].Contention, s.Services[0].Workers = nil, workers == 0, workers
		s.Services[0].Errors, s.Services[0].ErrorCost = float64(workers), float64(workers)
		want(t, "unfinished", play(t, s, retrying(3, 0)).Totals.Unfinished, 1)
	}
}

// A fault that comes and goes tens of thousands of times is no more than that much
// work.
func TestManyFaults(t *testing.T) {
	s := Scenario{
		Horizon: time.Minute,
		Services: []Service{{
			Name: "api", Hosts: 5, Workers: 1, Time: fixed(millisecond),
			Faults: []Fault{{Kind: Stall, For: 1, Every: time.Minute / 60000}, {Kind: Crash, At: 30 * second, For: 1, Hosts: 3, Warmup: second}},
		}},
		Fleets: []Fleet{{Calls: "api", Arrivals: Arrivals{Rate: 10}}},
	}
	conserved(t, &s, play(t, s, once()))
}
