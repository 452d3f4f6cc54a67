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

type (
	// Admin is the listener for operators. Empty: there is none.
	Admin struct{ Listen string }
	// Log is the access log: stdout, stderr, none or the path of a file. Empty means stdout.
	Log struct{ To string }
	// Traces has the URL of a collector that takes OTLP over HTTP. Empty: there are no traces. Share is how many of the traces that
	// begin here are sent. Zero means 1 %, negative none.
	Traces struct {
		OTLP  string
		Share float64
	}
	// Fleet has the URL of the Redis where proxies share budgets. Empty: the budgets are the proxy's own.
	Fleet struct{ Redis string }
)

func init() {
	codec.Register(codec.Kinds{Forms: map[reflect.Type]map[string]codec.Form{reflect.TypeFor[Traces](): {"Share": codec.Share}}})
}

// Parse reads the file of a proxy. check reports what else is wrong in it, as Validate does. The error is config.Mistakes.
func Parse(name string, data []byte, check func(*File) error) (f *File, err error) {
	f = &File{check: check}
	if f.policies, err = config.ParsePolicyFile(name, data, f); err != nil {
		return nil, err
	}
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

// Position returns where the field at path stands in a file that was parsed.
func (f *File) Position(path string) config.Position { return f.policies.Position(path) }

// Doors returns the names of the doors that have an address, and their addresses.
func (f *File) Doors() map[string]string {
	doors := map[string]string{proxy.ForwardDoor: f.Forward.Listen, proxy.IngressDoor: f.Ingress.Listen}
	for name, u := range f.Upstreams {
		doors[name] = u.Listen
	}
	maps.DeleteFunc(doors, func(_, address string) bool { return address == "" })
	return doors
}

// Validate returns what is wrong with the sections. The policies of the file are those that doors may name.
func (f *File) Validate(policies *config.PolicyFile) error {
	l, _ := errors.AsType[problem.List](f.Config().Validate())
	if f.check != nil {
		more, _ := errors.AsType[problem.List](f.check(f))
		l = append(l, more...)
	}
	l.Check(f.Drain >= 0 && f.Drain <= time.Hour, "Drain", f.Drain, "0 to 1h0m0s")
	l.Check(slices.Contains([]string{"", "stdout", "stderr", "none"}, f.Log.To) || strings.ContainsAny(f.Log.To, `/\`), "Log.To", quoted(f.Log.To), "stdout, stderr, none or the path of a file, such as ./access.log")
	l.Share(f.Traces.Share <= 1, "Traces.Share", f.Traces.Share, "zero (1 %), a share up to 1, or negative for none")
	l.Check(f.Traces.OTLP != "" || f.Traces.Share == 0, "Traces.Share", f.Traces.Share, "nothing without otlp, the URL of a collector")
	f.admin(&l)

	named := func(field, name string) {
		_, ok := policies.Dependency(name)
		l.Check(ok || name == "", field, name, "the name of a policy under dependencies")
	}
	routes := func(door string, routes []proxy.Route) {
		for i, r := range routes {
			named(fmt.Sprintf("%s.Routes[%d].Policy", door, i), r.Policy)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Upstreams)) {
		u, door := f.Upstreams[name], fmt.Sprintf("Upstreams[%q]", name)
		named(door+".Policy", u.Policy)
		routes(door, u.Routes)
	}
	routes("Forward", f.Forward.Routes)
	return l.Err()
}

// admin checks the address of the admin listener: nobody else may reach it, and no door leads there. (proxy.Config.Private is for
// TCP.)
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
	for name, door := range f.Doors() {
		l.Check(loopback(door) != loopback(address), "Admin.Listen", quoted(address), "an address of its own: the door "+name+" has the same")
	}
	const another = "another address than that of the admin listener"
	for name, u := range f.Upstreams {
		for i, to := range u.To {
			l.Check(to != address, fmt.Sprintf("Upstreams[%q].To[%d]", name, i), quoted(to), another)
		}
	}
	l.Check(f.Ingress.To != address, "Ingress.To", quoted(f.Ingress.To), another)
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
