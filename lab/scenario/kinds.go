package scenario

import (
	"reflect"

	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/lab/sim"
	"github.com/lullgo/lull/server/admission"
)

func init() {
	codec.Register(codec.Kinds{
		Forms: map[reflect.Type]map[string]codec.Form{
			reflect.TypeFor[admission.Config](): {"MaxWait": codec.Timeout, "RetryRatio": codec.Share},
			reflect.TypeFor[sim.Fleet]():        {"Fallback": codec.Share},
			reflect.TypeFor[sim.Reload]():       {"Share": codec.Share},
			reflect.TypeFor[sim.Network]():      {"Loss": codec.Share, "LossBack": codec.Share},
			reflect.TypeFor[sim.Poison]():       {"Share": codec.Share},
			reflect.TypeFor[sim.Service]():      {"Errors": codec.Share, "ErrorCost": codec.Share},
			reflect.TypeFor[sim.Fault]():        {"Share": codec.Share},
			reflect.TypeFor[sim.Distribution](): {"Slow": codec.Share},
		},
		Custom: map[reflect.Type]codec.Custom{
			reflect.TypeFor[sim.Distribution](): {Read: readDistribution, Write: writeDistribution, Whole: true},
		},
	})
}
