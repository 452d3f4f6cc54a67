package lullhttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lullgo/lull"
)

// WithPolicies gives requests that match a pattern a policy and a dependency of their
// own, with a budget and a breaker that they share with no others. Patterns are those
// of [WithRoute], but name a host:
//
//	lullhttp.WithPolicies(map[string]lull.Policy{
//		"payments.internal":                      {Attempts: 2},
//		"GET queue.internal/poll":                {AttemptTimeout: 30 * time.Second}, // answered after 20 s
//		"PUT files.internal/{bucket}/{object...}": {AttemptTimeout: 10 * time.Minute}, // uploads
//	})
//
// The pattern is the dependency's name, and [Transport.Dependency] returns it. It is
// wired as those of hosts are, but is not in the Registry: it keeps its policy when the
// Registry's changes.
func WithPolicies(policies map[string]lull.Policy) Option {
	return func(t *Transport) error {
		maps.Copy(t.policies, policies)
		return nil
	}
}

// WithDependencies makes pick choose the dependency of a request: one that is shared
// with lull.Do, say, or one for each tenant. Where it returns nil the request's own is
// used, that of WithPolicies or of the host. It must be safe for concurrent use.
//
// Those dependencies have their observers and other wiring from lull.NewDependency; New
// refuses With and WithObserver beside it, which would not reach them. A classifier of
// theirs (lull.WithClassifier) is for lull.Do: requests have this package's.
func WithDependencies(pick func(*http.Request) *lull.Dependency) Option {
	return func(t *Transport) error {
		t.pickDependency = pick
		return nil
	}
}

// makeDependencies makes those of WithPolicies, when all options are known.
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

// Dependency returns what the transport remembers of the thing that req would call:
// for looking at its budget and breaker.
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

// Registry holds the dependencies that the transport made for hosts, by host.
func (t *Transport) Registry() *lull.Registry { return t.registry }
