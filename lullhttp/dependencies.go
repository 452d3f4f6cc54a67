package lullhttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/option"
)

// WithPolicies gives requests that match a pattern a policy and a dependency of their own, which
// share no budget or breaker with others. Patterns are those of [WithRoute], but name a host:
//
//	lullhttp.WithPolicies(map[string]lull.Policy{
//		"payments.internal":                      {Attempts: 2},
//		"GET queue.internal/poll":                {AttemptTimeout: 30 * time.Second}, // answered after 20 s
//		"PUT files.internal/{bucket}/{object...}": {AttemptTimeout: 10 * time.Minute}, // uploads
//	})
//
// The pattern is the dependency's name. [Transport.Dependency] returns it. It is wired as those of
// hosts, but is not in the Registry: a new policy of the Registry does not change it.
func WithPolicies(policies map[string]lull.Policy) Option {
	return option.Set(func(t *Transport) { maps.Copy(t.policies, policies) })
}

// WithDependencies makes pick choose the dependency of a request, such as one that lull.Do uses as
// well, or one for each tenant. If it returns nil, that of WithPolicies or of the host is used. It
// must be safe for concurrent use.
//
// Those dependencies have their wiring from lull.NewDependency, so New refuses With and
// WithObserver beside this option. Their classifier (lull.WithClassifier) is for lull.Do only.
func WithDependencies(pick func(*http.Request) *lull.Dependency) Option {
	return option.Set(func(t *Transport) { t.pickDependency = pick })
}

// makeDependencies makes the dependencies of WithPolicies, when all options are known.
func (t *Transport) makeDependencies() error {
	if t.pickDependency != nil && len(t.wiring) > 0 {
		return errors.New("lullhttp: With and WithObserver do not reach the dependencies of WithDependencies:" +
			" give observers and the like to lull.NewDependency, or have the transport make the dependencies (WithPolicies)")
	}
	for _, pattern := range slices.Sorted(maps.Keys(t.policies)) {
		name := pattern
		if host, path, _ := strings.Cut(pattern, "/"); path == "" && !strings.Contains(host, " ") {
			name = canonicalHost("", host)
		}
		if strings.HasPrefix(pattern, "/") || strings.Contains(pattern, " /") {
			return fmt.Errorf("lullhttp: WithPolicies: pattern %q: want a host in it: a policy is for a thing that is called", pattern)
		}
		d, err := lull.NewDependency(name, t.policies[pattern], t.wiring...)
		if err == nil {
			err = t.ownDependencies.add(pattern, d)
		}
		if err != nil {
			return fmt.Errorf("lullhttp: WithPolicies: pattern %q: %w", pattern, err)
		}
	}
	return nil
}

// Dependency returns the dependency that a call of req would use, to look at its budget and
// breaker.
func (t *Transport) Dependency(req *http.Request) *lull.Dependency {
	if t == nil || t.registry == nil {
		panic(errUnmade)
	}
	if t.pickDependency != nil {
		if d := t.pickDependency(req); d != nil {
			return d
		}
	}
	if req.URL == nil || req.URL.Host == "" {
		return t.registry.Get("unknown host")
	}
	host := hostOf(req)
	if t.ownDependencies.mux != nil {
		if d, ok := t.ownDependencies.find(req, host); ok {
			return d
		}
	}
	return t.registry.Get(host)
}

// Registry returns the dependencies that the transport made for hosts, by host.
func (t *Transport) Registry() *lull.Registry { return t.registry }
