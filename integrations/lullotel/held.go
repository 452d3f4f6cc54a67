package lullotel

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/throttle"
)

// Where a call is while it holds its caller.
const (
	inAttempts = iota // at least one is under way; also before the first
	inWaits
)

var heldNames = [...]string{inAttempts: "attempt", inWaits: "wait"}

// hold counts the time of a call that has ended. A call that was refused before its first attempt has only waited.
func (o *operation) hold(e *lull.Event) {
	waited := choice.Either(e.Attempt < 1, e.Elapsed, min(e.Waited, e.Elapsed))
	o.held[inWaits].Add(int64(waited))
	o.held[inAttempts].Add(int64(e.Elapsed - waited))
}

// hinted records that the server asked to wait until then.
func (d *dependency) hinted(until time.Duration) {
	for {
		latest := d.hintUntil.Load()
		if latest >= int64(until) || d.hintUntil.CompareAndSwap(latest, int64(until)) {
			return
		}
	}
}

func (i *instruments) observeCooldown(out metric.Observer, label, cause string, left time.Duration) {
	out.ObserveFloat64(i.cooldown, max(left, 0).Seconds(), metric.WithAttributes(attribute.String(keyDependency, label), keyCause.String(cause)))
}

// cooldowns reports for how long attempts of d are held back. A circuit that is forced open has no end, and is left out.
func (i *instruments) cooldowns(d *lull.Dependency, label string, now time.Duration, out metric.Observer) {
	if b := d.Breaker(); b != nil {
		if until := b.RetryAt(now); until > 0 || b.State(now) != breaker.Open {
			i.observeCooldown(out, label, "circuit", until-now)
		}
	}
	if th := d.Throttle(); th != nil && d.Policy().Throttle.Mode == throttle.Cubic {
		i.observeCooldown(out, label, "throttle", th.State(now).Wait)
	}
}
