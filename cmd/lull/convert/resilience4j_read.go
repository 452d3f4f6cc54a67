package convert

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/serviceconfig"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/internal/waits"
)

// resilience4j has a registry for each mechanism, with instances by name. An instance of several registries is one dependency here.
// Read of RetryConfig, IntervalFunction, CircuitBreakerConfig, BulkheadConfig, TimeLimiterConfig and Common*ConfigurationProperties.

// What resilience4j does where nothing is said.
const (
	r4jAttempts   = 3
	r4jWait       = 500 * time.Millisecond
	r4jFactor     = 1.5
	r4jRandom     = 0.5
	r4jTimeout    = time.Second
	r4jRate       = 50 // per cent
	r4jSlowRate   = 100
	r4jSlow       = time.Minute
	r4jCalls      = 100 // at least, and in the window
	r4jOpen       = time.Minute
	r4jProbes     = 10
	r4jInFlight   = 25
	r4jWindow     = 10 * time.Second // of lull, for a window that counts calls
	allowedSpring = "a duration such as 500ms, 2s, PT2S, or a number of milliseconds"
)

var registries = []string{"retry", "circuitbreaker", "timelimiter", "bulkhead"}

type registry struct {
	configs, instances map[string]*tree.Object
}

type registries4j struct {
	all   map[string]*registry
	order []string        // of the instances
	used  map[string]bool // the paths of the configs that an instance has
}

func (r *reading) resilience4j(docs []*document) {
	for _, d := range docs {
		d.Same = samePlain
	}
	for _, a := range applications(docs) {
		a.resolve()
		if len(a.docs) == 1 && len(a.profiles) == 1 {
			r.registered(a, a.docs[0].document, nil)
			continue
		}
		for _, d := range a.docs {
			if o := d.Object(d.root, ""); o != nil {
				d.beside(o)
			}
		}
		for _, profiles := range a.profiles {
			if m := a.merged(profiles); m != nil {
				r.registered(a, m, profiles)
				r.collect(m)
			}
		}
	}
}

func (r *reading) registered(a *application, d *document, profiles []string) {
	root := d.Object(d.root, "")
	if root == nil {
		return
	}
	s := &registries4j{all: map[string]*registry{}, used: map[string]bool{}}
	for _, kind := range registries {
		s.all[kind] = &registry{map[string]*tree.Object{}, map[string]*tree.Object{}}
	}
	d.beside(root)
	d.registries(root, "", s)
	for _, name := range s.order {
		if name != defaultTarget {
			r.instance(a, d, profiles, name, s)
		}
	}
	// The instances called default, and the default configs that no instance in the file has: the code makes instances as well.
	for _, kind := range registries {
		of := s.all[kind]
		if c := of.configs[defaultTarget]; c != nil && !s.used[c.Path] && of.instances[defaultTarget] == nil {
			d.note(Assumed, c.Path,
				"no instance in this file has it: it is for those that the code makes, and here for a dependency called "+tree.Quote(defaultTarget))
			of.instances[defaultTarget] = d.Object(tree.NewMap(), c.Path)
		}
	}
	r.instance(a, d, profiles, defaultTarget, s)
	for _, kind := range registries {
		for _, name := range slices.Sorted(maps.Keys(s.all[kind].configs)) {
			if c := s.all[kind].configs[name]; !s.used[c.Path] {
				d.noteWhole(Lost, c.Node, c.Path, "no instance in this file has it")
			}
		}
	}
}

func (d *document) beside(o *tree.Object) {
	for _, m := range o.Node.Members {
		first, _, _ := strings.Cut(m.Key, ".")
		if plain(first) == "resilience4j" {
			continue
		}
		n, path := o.Get(m.Key)
		if n == nil {
			continue
		}
		if !slices.Contains([]string{"management", "logging", "info"}, plain(first)) { // whose words are about health and metrics
			for _, at := range mentions(n, path) {
				d.note(Lost, at, notReadWhy)
			}
		}
		d.noteWhole(Aside, n, path, plainWhy)
	}
}

// registries finds the registries below o, whose keys may be joined by dots: resilience4j.retry.
func (d *document) registries(o *tree.Object, prefix string, s *registries4j) {
	if o == nil {
		return
	}
	for _, m := range o.Node.Members {
		key := strings.TrimPrefix(prefix+"."+m.Key, ".")
		words := strings.SplitN(key, ".", 4)
		if plain(words[0]) != "resilience4j" || len(words) > 1 && s.all[plain(words[1])] == nil { // of another kind: it is lost
			continue
		}
		if len(words) < 3 {
			d.registries(o.Object(m.Key), key, s)
			continue
		}
		into, order := s.all[plain(words[1])].configs, &[]string{}
		switch plain(words[2]) {
		case "instances", "backends":
			into, order = s.all[plain(words[1])].instances, &s.order
		case "configs":
		default:
			continue
		}
		if len(words) == 3 {
			if named := o.Object(m.Key); named != nil {
				for _, each := range named.Node.Members {
					d.part(named, each.Key, each.Key, into, order)
				}
			}
		} else if m.Value.Kind == tree.Map { // a single value with a key of more words is lost
			d.part(o, m.Key, words[3], into, order)
		}
	}
}

func (d *document) part(o *tree.Object, key, name string, into map[string]*tree.Object, order *[]string) {
	n, path := o.Get(key)
	if n == nil {
		if n = o.Field(key); n == nil || n.Kind != tree.Null {
			return // given twice, which is a mistake
		}
		n = &tree.Node{Kind: tree.Map, Line: n.Line, Column: n.Column} // all of it is left to the configs
	}
	part := d.Object(n, path)
	if part == nil {
		return
	}
	into[name] = part
	if !slices.Contains(*order, name) {
		*order = append(*order, name)
	}
}

// A settings4j is the settings of an instance: its own, and those of the configs below it.
type settings4j struct {
	d       *document
	path    string
	levels  []*tree.Object
	missing unsaid
}

func (of *registry) settings(d *document, kind, name string, used map[string]bool) *settings4j {
	own := of.instances[name]
	if own == nil {
		return nil
	}
	// Each instance reads all of its levels anew.
	s := &settings4j{d: d, path: own.Path, levels: []*tree.Object{d.Object(own.Node, own.Path)}}
	seen := map[string]bool{}
	add := func(config string) bool {
		c := of.configs[config]
		if c == nil || seen[config] {
			return false
		}
		seen[config], used[c.Path] = true, true
		s.levels = append(s.levels, d.Object(c.Node, c.Path))
		return true
	}
	for {
		last := s.levels[len(s.levels)-1]
		n, path := last.Get("baseConfig")
		if n == nil {
			break
		}
		if !add(n.Text) {
			d.Wrong(n, path, n.Found(), "the name of another of the configs", "")
			return nil
		}
	}
	if kind == "circuitbreaker" && len(s.levels) > 1 {
		return s // which has nothing of the default then
	}
	if kind != "circuitbreaker" || !add(name) {
		add("default")
	}
	return s
}

func (s *settings4j) level(name string) *tree.Object {
	for _, o := range s.levels {
		if o.Has(name) {
			return o
		}
	}
	return nil
}

// whole, share and span read a field of the first level that has it, or note that otherwise counts.
func (s *settings4j) whole(name string, otherwise int) int {
	n, ok := s.first(name, otherwise).Whole(name, 1, math.MaxInt32, "a whole number from 1")
	return choice.Either(ok, int(n), otherwise)
}

func (s *settings4j) share(name string, otherwise float64) float64 {
	f, ok := s.first(name, otherwise).Float(name, "a percentage above 0 and up to 100", func(f float64) bool { return f >= 0.001 && f <= 100 })
	return choice.Either(ok, f, otherwise) / 100
}

func (s *settings4j) span(name string, otherwise time.Duration) time.Duration {
	t, ok := s.spring(s.first(name, otherwise), name)
	return choice.Either(ok, t, otherwise)
}

// first is level for a field of which otherwise counts if none has it.
func (s *settings4j) first(name string, otherwise any) *tree.Object {
	o := s.level(name)
	s.missing.add(o == nil, fmt.Sprintf("%s %v", name, otherwise))
	return o
}

// factor and random read how waits grow, and how much of them is random. given: the file has it.
func (s *settings4j) factor(o *tree.Object) (f float64, given bool) {
	f, given = o.Float("exponentialBackoffMultiplier", "a number from 1 to 1000", func(f float64) bool { return f >= 1 && f <= 1000 })
	s.missing.add(!given, fmt.Sprintf("exponentialBackoffMultiplier %v", r4jFactor))
	return choice.Either(given, f, r4jFactor), given
}

func (s *settings4j) random(o *tree.Object) float64 {
	f, given := o.Float("randomizedWaitFactor", "a number from 0 to 1", func(f float64) bool { return f >= 0 && f <= 1 })
	s.missing.add(!given, fmt.Sprintf("randomizedWaitFactor %v", r4jRandom))
	return choice.Either(given, f, r4jRandom)
}

func (s *settings4j) spring(o *tree.Object, name string) (time.Duration, bool) {
	n, path := o.Get(name)
	if n == nil {
		return 0, false
	}
	t, ok := springDuration(n.Text)
	return t, s.d.Check(n.Scalar() && ok, n, path, allowedSpring)
}

// flag reads a field that is true or false. One that is false has an entry: it switches something off.
func (s *settings4j) flag(o *tree.Object, name string) bool {
	on, given := o.Bool(name)
	s.d.noteIf(given && !on, Aside, o.At(name), offWhy)
	return on
}

func (s *settings4j) rest() {
	for _, o := range s.levels {
		s.d.lost(o, Lost, "lull decides by the failure what is retried and what counts: lull.WithClassifier, lull.Transient and lull.Permanent", "retryExceptions", "ignoreExceptions", "retryExceptionPredicate",
			"resultPredicate", "recordExceptions", "recordFailurePredicate", "recordResultPredicate", "ignoreExceptionPredicate")
		s.d.lost(o, Aside, plainWhy, "registerHealthIndicator", "allowHealthIndicatorToFail", "eventConsumerBufferSize", "subscribeForEvents", "writableStackTraceEnabled",
			"ignoreClassBindingExceptions", "ignoreUnknownExceptions", "cancelRunningFuture", "automaticTransitionFromOpenToHalfOpenEnabled")
	}
}

// springUnits are those of Spring Boot's DurationStyle.
var springUnits = map[string]time.Duration{"": time.Millisecond, "ns": 1, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

var (
	springSimple = regexp.MustCompile(`^([0-9]{1,18})(ns|us|ms|s|m|h|d)?$`)
	springISO    = regexp.MustCompile(`^P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)S)?)?$`)
)

// springDuration reads 500ms, PT0.5S or 500. One that is negative, or too long for a time.Duration, is refused.
func springDuration(text string) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if m := springSimple.FindStringSubmatch(strings.ToLower(text)); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		unit := springUnits[m[2]]
		return time.Duration(n) * unit, err == nil && n <= math.MaxInt64/int64(unit)
	}
	m := springISO.FindStringSubmatch(strings.ToUpper(text))
	if m == nil || strings.HasSuffix(text, "T") || len(text) < 3 {
		return 0, false
	}
	total := 0.0
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if m[i+1] != "" {
			f, _ := strconv.ParseFloat(m[i+1], 64)
			total += f * float64(unit)
		}
	}
	return time.Duration(total), total < math.MaxInt64
}

func (r *reading) instance(a *application, d *document, profiles []string, name string, all *registries4j) {
	p, extras := r.base.of(Resilience4j).policy, Resilience4j.known()
	extras.ignoresHints, extras.facts = true, Facts{Service: name}
	var rest []source
	var first string
	for _, kind := range registries {
		s := all.all[kind].settings(d, kind, name, all.used)
		if s == nil {
			continue
		}
		first = cmp.Or(first, s.path)
		rest = append(rest, d.sourcesIn(s.path)...)
		locate := func(field, name string) { // if a level has it
			if o := s.level(name); o != nil {
				extras.places[field] = d.at(o.At(name)).Position
			}
		}
		at := d.at(s.path).Position
		switch kind {
		case "retry":
			s.retry(&p)
			locate("attempts", "maxAttempts")
			locate("backoff.base", "waitDuration")
		case "circuitbreaker":
			extras.places["breaker"] = at
			p.Breaker = s.breaker()
			locate("breaker.min_calls", "minimumNumberOfCalls")
			locate("breaker.slow_call", "slowCallDurationThreshold")
		case "timelimiter":
			locate("attempt_timeout", "timeoutDuration")
			p.AttemptTimeout = cmp.Or(atLeastMillisecond(s.span("timeoutDuration", r4jTimeout)), lull.NoTimeout)
		case "bulkhead":
			extras.places["limit.in_flight"] = at
			p.Limit = bulkhead.Config{InFlight: s.whole("maxConcurrentCalls", r4jInFlight), MaxWait: atLeastMillisecond(s.span("maxWaitDuration", 0))}
		}
		d.noteIf(len(s.missing) > 0, Assumed, s.path,
			"as resilience4j has it where nothing is said: "+strings.Join(s.missing, ", "))
		s.rest()
	}
	if first == "" {
		return // a mistake
	}
	r.add(d, a.nameFor(name, profiles, p), nil, first, p, extras, rest...)
}

func (s *settings4j) retry(p *lull.Policy) {
	p.Attempts = s.d.attempts(int64(s.whole("maxAttempts", r4jAttempts))-1, s.level("maxAttempts").At("maxAttempts"))
	p.Backoff = s.waits(p.Attempts)
	p.Timeouts, p.RateLimitedBase = lull.TimeoutsAlways, waits.SameWhenRateLimited
	if p.Attempts == 1 {
		p.Backoff = backoff.Schedule{}
		s.d.note(Changed, s.path, "there are no retries")
		return
	}
	s.d.note(Changed, s.path, "resilience4j retries every exception unless it is told which; lull those that may be transient")
	s.d.noteAbout(true, hints, Changed, s.path, "resilience4j does not look at Retry-After; lull does, and waits for up to 30s")
}

// waits reads the waits. The level with waitDuration decides; those below it count for all but the share that is random.
func (s *settings4j) waits(attempts int) backoff.Schedule {
	o := s.level("waitDuration")
	wait := s.span("waitDuration", r4jWait)
	var own settings4j
	if o != nil {
		own = settings4j{d: s.d, levels: s.levels[slices.Index(s.levels, o):]}
	}
	exponential := s.flag(own.level("enableExponentialBackoff"), "enableExponentialBackoff")
	random := s.flag(own.level("enableRandomizedWait"), "enableRandomizedWait")
	factor, given := 1.0, false
	longest := time.Duration(0)
	if exponential {
		if factor, given = s.factor(own.level("exponentialBackoffMultiplier")); given {
			longest, _ = s.spring(own.level("exponentialMaxWaitDuration"), "exponentialMaxWaitDuration")
		}
	}
	if wait == 0 {
		return backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None}
	}
	wait = atLeastMillisecond(wait)
	last := float64(wait) * math.Pow(factor, float64(max(attempts-2, 0)))
	if longest == 0 {
		longest = time.Duration(min(last, float64(24*time.Hour)))
		if last > float64(longest) {
			s.d.note(Changed, o.Path, "without exponentialMaxWaitDuration waits grow without end; here they end at a day")
		}
	}
	longest = max(atLeastMillisecond(longest), time.Millisecond)
	switch {
	case random:
		share := s.random(o)
		s.d.noteIf(share != 0.2, Changed, o.Path,
			fmt.Sprintf("resilience4j spreads a wait by %v up and down; here it is a fifth, with the same mean", share))
		return serviceconfig.Reading{}.Waits(serviceconfig.RetryPolicy{InitialBackoff: min(wait, longest), MaxBackoff: longest, BackoffMultiplier: factor})
	case exponential:
		return backoff.Schedule{Jitter: backoff.None, Base: min(wait, longest), Cap: longest, Factor: factor}
	}
	return backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: wait, Cap: wait}
}

func (s *settings4j) breaker() breaker.Config {
	d := s.d
	c := breaker.Config{Consecutive: -1, OpenJitter: -1,
		FailureRate: s.share("failureRateThreshold", r4jRate), SlowRate: s.share("slowCallRateThreshold", r4jSlowRate), SlowCall: max(s.span("slowCallDurationThreshold", r4jSlow), time.Millisecond),
		MinCalls: s.whole("minimumNumberOfCalls", r4jCalls)}
	size := s.whole("slidingWindowSize", r4jCalls)
	byTime := false
	o := s.level("slidingWindowType")
	if o != nil {
		n, path := o.Get("slidingWindowType")
		byTime = plain(n.Text) == "timebased"
		d.Check(byTime || plain(n.Text) == "countbased", n, path, "COUNT_BASED or TIME_BASED")
	}
	s.missing.add(o == nil, "slidingWindowType COUNT_BASED")
	if byTime {
		c.Window = time.Duration(size) * time.Second
	} else {
		c.Window, c.MinCalls = r4jWindow, min(c.MinCalls, size)
		d.note(Changed, s.path, fmt.Sprintf("resilience4j judges the last %d calls; lull those of the last %v", size, r4jWindow))
	}
	if c.Probes = s.whole("permittedNumberOfCallsInHalfOpenState", r4jProbes); c.Probes > 1000 {
		c.Probes = 1000
		d.note(Changed, s.level("permittedNumberOfCallsInHalfOpenState").At("permittedNumberOfCallsInHalfOpenState"), "at most 1000 probes")
	}
	d.note(Changed, s.path, "resilience4j's breaker counts attempts, and probes may fail below its thresholds; lull's counts calls, ends the retries of a call when it opens, and one failed probe opens it again")

	o = s.level("waitDurationInOpenState")
	c.OpenFor = max(s.span("waitDurationInOpenState", r4jOpen), time.Millisecond)
	c.OpenMax = c.OpenFor
	if o == nil {
		return c
	}
	if s.flag(o, "enableExponentialBackoff") {
		factor, given := s.factor(o)
		c.OpenMax = 24 * time.Hour
		if longest, ok := s.spring(o, "exponentialMaxWaitDurationInOpenState"); ok && given {
			c.OpenMax = max(atLeastMillisecond(longest), c.OpenFor)
		}
		d.note(Changed, o.Path, fmt.Sprintf("the open time grows by %v from one opening to the next; here it doubles", factor))
	}
	if s.flag(o, "enableRandomizedWait") {
		share := s.random(o)
		d.note(Changed, o.Path, fmt.Sprintf("resilience4j spreads the open time by %v up and down; here it is up to half longer", share))
		c.OpenJitter, c.OpenMax = 0, max(c.OpenMax, c.OpenFor+c.OpenFor/2)
	}
	return c
}
