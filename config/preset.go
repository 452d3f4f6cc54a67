package config

import (
	"slices"
	"sync"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/clients"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/preset"
)

// own are those of package preset, in the order in which messages list them.
var own = []struct {
	name   string
	policy func() lull.Policy
}{
	{"internal-service", preset.InternalService},
	{"external-api", preset.ExternalAPI},
	{"background-worker", preset.BackgroundWorker},
	{"command-line", preset.CommandLine},
	{"edge", preset.Edge},
}

// Presets are the names that "preset" can have in a file. They are the five of package preset, which
// are meant to begin with. In the program lull the clients of others follow that a policy can describe
// completely; they are for looking at what a team has today.
func Presets() []string {
	names := ownNames()
	for _, c := range clients.All() {
		if !c.Partial {
			names = append(names, c.Name)
		}
	}
	return names
}

func ownNames() []string {
	names := make([]string, len(own))
	for i, p := range own {
		names[i] = p.name
	}
	return names
}

type template struct {
	policy lull.Policy
	// whole: it is a client that exists. All its fields count, also those that are zero.
	whole bool
}

// PresetPolicy returns the policy of a name of [Presets].
func PresetPolicy(name string) (lull.Policy, bool) {
	if presetOf(name) == nil {
		return lull.Policy{}, false
	}
	return policyOf(name), true
}

var templates = sync.OnceValue(func() map[string]*template {
	all := map[string]*template{}
	for _, c := range clients.All() {
		if !c.Partial {
			all[c.Name] = &template{c.Policy, true}
		}
	}
	for _, p := range own {
		all[p.name] = &template{policy: p.policy()}
	}
	return all
})

func readPreset(r *codec.Reader, n *tree.Node, path string) (string, template) {
	if !r.Sound(n, path) {
		return "", template{}
	}
	r.Places[path] = r.Place(n)
	if n.Scalar() {
		if t := presetOf(n.Text); t != nil {
			return n.Text, *t
		}
		if slices.ContainsFunc(clients.All(), func(c clients.Client) bool { return c.Name == n.Text }) {
			r.WrongAt(n, path, n.Quoted()+", which has a budget or a jitter that no policy can have", allowedPreset(clients.All()), "")
			return "", template{}
		}
	}
	// Reading continues with the suggestion, to find what else is wrong.
	near := choice.Nearest(n.Text, Presets())
	r.WrongAt(n, path, n.Quoted(), allowedPreset(clients.All()), near)
	if t := presetOf(near); t != nil {
		return near, *t
	}
	return near, template{}
}

func allowedPreset(others []clients.Client) string {
	names := ownNames()
	if len(others) > 0 {
		names = append(names, "a client that is all policy, such as go-retryablehttp")
	}
	return choice.List(names)
}
