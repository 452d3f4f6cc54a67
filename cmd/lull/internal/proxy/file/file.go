// Package file reads the files of lull proxy: policy files with the doors of a proxy, and what stands around them.
package file

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/server/proxy"
)

// A File is the sections of a proxy in its file.
type File struct {
	Upstreams map[string]proxy.Upstream
	Forward   proxy.Forward
	Ingress   proxy.Ingress
	Limits    proxy.Limits
	Admin     Admin
	Log       Log
	Traces    Traces
	Fleet     Fleet
	// Drain is how long requests in flight may take at the end. Zero means proxy.DefaultDrain.
	Drain time.Duration

	check    func(*File) error  // may be nil
	policies *config.PolicyFile // nil: the zero policy
}

// Admin is the listener for operators. Empty: there is none.
type Admin struct{ Listen string }

// Log is the access log.
type Log struct {
	// To is stdout, stderr, none or the path of a file. Empty means stdout.
	To string
}

// Traces are sent with OTLP over HTTP. Without an address there are none.
type Traces struct {
	OTLP string
	// Share is how many of the requests without a trace begin one. Zero: 1 %.
	Share float64
}

// Fleet is what sidecars share.
type Fleet struct {
	// Redis has the budgets.
	Redis string
}

func init() {
	codec.Register(codec.Kinds{Forms: map[reflect.Type]map[string]codec.Form{reflect.TypeFor[Traces](): {"Share": codec.Share}}})
}

// Parse reads the file of a proxy. check reports what else is wrong in it, as Validate does. The error is config.Mistakes.
func Parse(name string, data []byte, check func(*File) error) (*File, error) {
	f := &File{check: check}
	policies, err := config.ParsePolicyFile(name, data, f)
	if err != nil {
		return nil, err
	}
	f.policies = policies
	return f, nil
}

// ParsePolicies reads a policy file, or the policies of the file of a proxy. The error is config.Mistakes, with those of the sections.
func ParsePolicies(name string, data []byte) (*config.PolicyFile, error) {
	policies, err := config.ParsePolicyFile(name, data)
	wrong, _ := errors.AsType[config.Mistakes](err)
	for _, m := range wrong {
		if m.Found == "unknown" && slices.Contains([]string{"upstreams", "forward", "ingress"}, m.Path) {
			return config.ParsePolicyFile(name, data, new(File))
		}
	}
	return policies, err
}

// Config returns what the proxy does.
func (f *File) Config() proxy.Config {
	c := proxy.Config{Upstreams: f.Upstreams, Forward: f.Forward, Ingress: f.Ingress, Limits: f.Limits}
	if f.Admin.Listen != "" {
		c.Private = []string{f.Admin.Listen}
	}
	if f.policies != nil {
		c.Policy = f.policies.Policy
	}
	return c
}

// Position returns where the field at path stands in the file.
func (f *File) Position(path string) config.Position {
	if f.policies == nil {
		return config.Position{}
	}
	return f.policies.Position(path)
}

// Doors returns the names of the doors that have an address, and their addresses.
func (f *File) Doors() map[string]string {
	doors := map[string]string{}
	for name, u := range f.Upstreams {
		doors[name] = u.Listen
	}
	if f.Forward.Listen != "" {
		doors[proxy.ForwardDoor] = f.Forward.Listen
	}
	if f.Ingress.Listen != "" {
		doors[proxy.IngressDoor] = f.Ingress.Listen
	}
	return doors
}

const longestDrain = time.Hour

// Validate returns what is wrong with the sections. The policies of the file are those that doors may name.
func (f *File) Validate(policies *config.PolicyFile) error {
	err := f.Config().Validate()
	l, _ := errors.AsType[problem.List](err)
	l.Check(f.Drain >= 0 && f.Drain <= longestDrain, "Drain", f.Drain, fmt.Sprintf("0 to %v", longestDrain))
	if f.check != nil {
		more, _ := errors.AsType[problem.List](f.check(f))
		l = append(l, more...)
	}
	to := f.Log.To
	l.Check(to == "" || to == "stdout" || to == "stderr" || to == "none" || strings.ContainsAny(to, `/\`), "Log.To", quoted(to), "stdout, stderr, none or the path of a file, such as ./access.log")
	f.admin(&l)
	for _, name := range slices.Sorted(maps.Keys(f.Upstreams)) {
		u, field := f.Upstreams[name], fmt.Sprintf("Upstreams[%q]", name)
		listed(&l, policies, field+".Policy", u.Policy)
		listedRoutes(&l, policies, field, u.Routes)
	}
	listedRoutes(&l, policies, "Forward", f.Forward.Routes)
	return l.Err()
}

func listedRoutes(l *problem.List, policies *config.PolicyFile, field string, routes []proxy.Route) {
	for i, r := range routes {
		listed(l, policies, fmt.Sprintf("%s.Routes[%d].Policy", field, i), r.Policy)
	}
}

func listed(l *problem.List, policies *config.PolicyFile, field, name string) {
	if _, ok := policies.Dependency(name); !ok && name != "" {
		l.Add(field, name, "the name of a policy under dependencies")
	}
}

// admin checks the address of the admin listener: nobody else may reach it.
func (f *File) admin(l *problem.List) {
	address := f.Admin.Listen
	if address == "" {
		return
	}
	ok := strings.HasPrefix(address, "unix:/")
	if at, err := netip.ParseAddrPort(loopback(address)); err == nil {
		ok = at.Addr().Unmap().IsLoopback()
	}
	l.Check(ok, "Admin.Listen", quoted(address), "an address that only this machine reaches, such as 127.0.0.1:9900 or unix:/run/lull/admin.sock: whoever reaches it can drain the proxy")
	f.noneLeadsTo(l, address)
	for name, door := range f.Doors() {
		l.Check(loopback(door) != loopback(address), "Admin.Listen", quoted(address), "an address of its own: the door "+name+" has the same")
	}
}

// noneLeadsTo checks that no door leads to the socket of the admin listener. proxy.Config.Private is for TCP.
func (f *File) noneLeadsTo(l *problem.List, address string) {
	leads := func(field, to string) {
		l.Check(to != address, field, quoted(to), "another address than that of the admin listener")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Upstreams)) {
		for i, to := range f.Upstreams[name].To {
			leads(fmt.Sprintf("Upstreams[%q].To[%d]", name, i), to)
		}
	}
	leads("Ingress.To", f.Ingress.To)
}

// loopback returns an address with localhost as a number.
func loopback(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && strings.EqualFold(host, "localhost") {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// quoted is a value of a problem that is not the name of anything in the file.
type quoted string

func (q quoted) String() string { return fmt.Sprintf("%q", string(q)) }

// Unused returns the names of policies that no door and no route has. With a forward door any of them may be a host.
func (f *File) Unused() (names []string) {
	if f.policies == nil || f.Forward.Listen != "" {
		return nil
	}
	used := map[string]bool{}
	for name, u := range f.Upstreams {
		used[cmp.Or(u.Policy, name)] = true
		for _, r := range u.Routes {
			used[r.Policy] = true
		}
	}
	for _, d := range f.policies.Dependencies {
		if !used[d.Name] {
			names = append(names, d.Name)
		}
	}
	return names
}
