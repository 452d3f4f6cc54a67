package config

import (
	"slices"
	"sync"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
	"github.com/lullgo/lull/preset"
)

// own are the presets of package lull, in the order in which messages list them.
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

// Presets are the names that "preset" can have in a file. First come the presets of package lull,
// which are meant to begin with. Then come the clients of package preset that a policy can describe
// completely; they are for looking at what a team has today.
func Presets() []string {
	var names []string
	for _, p := range own {
		names = append(names, p.name)
	}
	for _, p := range preset.All() {
		if expressible(p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// expressible reports whether a policy describes all of p. Other presets have a budget or a jitter that
// no policy can have; without it they would be another client, and most of them one without a
// budget. Others are consumers of queues.
func expressible(p preset.Preset) bool {
	return p.Budget == preset.Budget{} && p.Jitter == preset.Jitter{} && !p.Messages
}

// A template is the policy of a preset.
type template struct {
	policy lull.Policy
	// whole: it is a client that exists. All its fields count, also those that are zero.
	whole bool
}

// PresetPolicy returns the policy of a name of [Presets].
func PresetPolicy(name string) (lull.Policy, bool) {
	t, ok := findTemplate(name)
	return t.policy, ok
}

// templates are those of all presets, by their names.
var templates = sync.OnceValue(func() map[string]template {
	all := map[string]template{}
	for _, p := range preset.All() {
		if !expressible(p) {
			continue
		}
		if !p.Reads.Timeouts {
			p.Policy.Timeouts = lull.TimeoutsNever // in a simulation the driver decides
		}
		all[p.Name] = template{p.Policy, true}
	}
	for _, p := range own {
		all[p.name] = template{policy: p.policy()}
	}
	return all
})

func findTemplate(name string) (template, bool) {
	t, ok := templates()[name]
	return t, ok
}

// readPreset reads the preset that n names.
func readPreset(r *codec.Reader, n *tree.Node, path string) (string, template) {
	if !r.Sound(n, path) {
		return "", template{}
	}
	r.Places[path] = r.Place(n)
	if n.Scalar() {
		if t, ok := findTemplate(n.Text); ok {
			return n.Text, t
		}
		if slices.ContainsFunc(preset.All(), func(p preset.Preset) bool { return p.Name == n.Text }) {
			r.WrongAt(n, path, n.Quoted()+", which has a budget or a jitter that no policy can have", allowedPreset(), "")
			return "", template{}
		}
	}
	// Reading continues with the suggestion, to find what else is wrong.
	near := choice.Nearest(n.Text, Presets())
	r.WrongAt(n, path, n.Quoted(), allowedPreset(), near)
	t, _ := findTemplate(near)
	return near, t
}

func allowedPreset() string {
	var names []string
	for _, p := range own {
		names = append(names, p.name)
	}
	return choice.List(append(names, "a client that is all policy, such as go-retryablehttp"))
}
