package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull/cmd/lull/convert"
)

// A retrier is a system in whose files calls to a service are retried.
type retrier struct {
	*dependency
	of    convert.Format
	facts convert.Facts
}

// systemsInLayers reports services whose calls are retried by several systems: a mesh sees a retry of a
// sidecar as one more request.
func (p *pass) systemsInLayers() {
	var all []retrier
	for _, d := range p.dependencies {
		set := d.in.set
		if set == nil || d.attempts() < 2 || !(d.hasField("attempts") || d.hasField("hedge.attempts")) {
			continue
		}
		if facts := set.Facts(d.Name); facts.Service != "" {
			all = append(all, retrier{d, set.Format(d.Name), facts})
		}
	}
	done := map[*dependency]bool{}
	for i, first := range all {
		if done[first.dependency] {
			continue
		}
		layers := []retrier{first}
		for _, other := range all[i+1:] {
			if other.sameService(first) && !slices.ContainsFunc(layers, func(l retrier) bool { return l.of.System() == other.of.System() }) {
				layers = append(layers, other)
			}
		}
		if len(layers) > 1 {
			for _, l := range layers {
				done[l.dependency] = true
			}
			p.severalSystems(layers)
		}
	}
}

func (r retrier) sameService(other retrier) bool {
	a, b := r.facts, other.facts
	return a.Service == b.Service && (a.Namespace == b.Namespace || a.Namespace == "" || b.Namespace == "")
}

// severalSystems reports layers of retries for one service. The fix leaves those of the first.
func (p *pass) severalSystems(layers []retrier) {
	service := layers[0].facts.Service
	total, endless := uint64(1), false
	var factors, names []string
	var steps []Step
	var once []*dependency
	for i, l := range layers {
		n := l.most()
		total, endless = product(total, n), endless || l.endless()
		factors, names = append(factors, strconv.FormatUint(n, 10)), append(names, l.of.System())
		line, _ := l.in.place(l.at(l.attemptsField()))
		where := fmt.Sprintf("attempts of %s (%s:%d)", l.of.System(), l.in.name, line)
		switch {
		case l.endless():
			steps = append(steps, Step{What: where + ", as many as there is time for"})
		case i == 0:
			steps = append(steps, Step{where, factors[i], factors[i]})
		default:
			steps = append(steps, Step{where, "× " + factors[i], attemptsFigure(total)})
		}
		if i > 0 {
			once = append(once, l.dependency)
		}
	}
	how := fmt.Sprintf("one call may become %s attempts (%s)", attemptsFigure(total), strings.Join(factors, " × "))
	if endless {
		how = "the retries multiply"
	}
	first := layers[0]
	fix := onlyOnce(once, nil, "then one layer retries, "+first.of.System())
	p.report(first.in, first.at(first.attemptsField()), fmt.Sprintf("calls to %s are retried by %s: %s", service, list(names), how), steps, fix)
}
