package proxy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/server/proxy"
)

// describe returns what a file means.
func describe(f *file.File) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	used := map[string]bool{}
	row := func(door, listen, to, policy string) {
		fmt.Fprintf(t, "%s\t%s\t-> %s\t%s\n", door, listen, to, policy)
	}
	routes := func(routes []proxy.Route, own string) {
		for _, r := range routes {
			name := cmp.Or(r.Policy, own)
			used[name] = true
			row("", "", r.Match, fmt.Sprintf("policy %s, repeat %v", name, r.Repeat))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Upstreams)) {
		u := f.Upstreams[name]
		own := cmp.Or(u.Policy, name)
		used[own] = true
		row(name, u.Listen, strings.Join(u.To, ", "), "policy "+own)
		routes(u.Routes, own)
	}
	if d := f.Forward; d.Listen != "" {
		row(proxy.ForwardDoor, d.Listen, strings.Join(d.Hosts, ", "), "policies by host")
		routes(d.Routes, "of the host")
	}
	if d := f.Ingress; d.Listen != "" {
		row(proxy.IngressDoor, d.Listen, d.To, fmt.Sprintf("trust %v", d.Trust))
	}
	fmt.Fprintf(t, "admin\t%s\nlog\t%s\ndrain\t%v\n", cmp.Or(f.Admin.Listen, "none"), cmp.Or(f.Log.To, "stdout"), cmp.Or(f.Drain, proxy.DefaultDrain))
	t.Flush()

	policy := f.Config().Policy
	var policies []config.NamedPolicy
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if policy != nil && name != "of the host" {
			policies = append(policies, config.NamedPolicy{Name: name, Policy: policy(name)})
		}
	}
	if text, err := config.FormatPolicies(policies); err == nil {
		b.WriteString("\n" + string(text))
	}
	for _, name := range f.Unused() {
		fmt.Fprintf(&b, "\nThe policy %s has no effect: no door and no route has that name.\n", name)
	}
	return b.String()
}
