package lullotel

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lullgo/lull/server/admission"
)

// keyGate is the name of an admission controller.
const keyGate = "admission"

// gate has the counters of an admission controller, by priority and class.
type gate struct {
	label    string
	admitted [4][3]atomic.Int64
	shed     [4][3][16]atomic.Int64 // and by reason
	waited   [2][]metric.RecordOption
}

func newGate(label string) *gate {
	g := &gate{label: label}
	for i, result := range [...]string{"admitted", "shed"} {
		g.waited[i] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attribute.String(keyGate, label), keyResult.String(result)))}
	}
	return g
}

// Admission returns an observer for an admission controller, which is counted under the given name:
//
//	controller, err := admission.New(config, admission.WithObserver(t.Admission("api")))
//	gate := admission.NewGate(controller)
//	t.WatchGate("api", gate)
func (t *Telemetry) Admission(name string) func(admission.Event) {
	g := t.gates.get(name)
	return func(e admission.Event) {
		if e.Kind == admission.Departure {
			return
		}
		priority := min(max(int(e.Priority-admission.Sheddable), 0), len(g.admitted)-1)
		class := min(int(e.Class), len(g.admitted[0])-1)
		shed := e.Kind == admission.Refusal
		if shed {
			g.shed[priority][class][min(int(e.Decision.Reason), 15)].Add(1)
		} else {
			g.admitted[priority][class].Add(1)
		}
		if e.Waited > 0 {
			t.instruments.admissionWait.Record(context.Background(), e.Waited.Seconds(), g.waited[zeroOrOne(shed)]...)
		}
	}
}

func (g *gate) collect(i *instruments, out metric.Observer) {
	for p := range g.admitted {
		for c := range g.admitted[p] {
			all := [...]attribute.KeyValue{
				attribute.String(keyGate, g.label),
				attribute.String("priority", (admission.Sheddable + admission.Priority(p)).String()),
				attribute.String("attempt_class", admission.AttemptKind(c).String()),
				{},
			}
			// A 0 is reported too: without it a share of all requests cannot be computed.
			out.ObserveInt64(i.admitted, g.admitted[p][c].Load(), metric.WithAttributes(all[:3]...))
			for r := range g.shed[p][c] {
				if n := g.shed[p][c][r].Load(); n > 0 {
					all[3] = keyReason.String(admission.RefusalReason(r).String())
					out.ObserveInt64(i.shed, n, metric.WithAttributes(all[:]...))
				}
			}
		}
	}
}
