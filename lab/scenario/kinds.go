package scenario

import (
	"reflect"

	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/lab/sim"
	"github.com/lullgo/lull/server/admission"
)

func init() {
	share := func(names ...string) map[string]codec.Form {
		m := map[string]codec.Form{}
		for _, name := range names {
			m[name] = codec.Share
		}
		return m
	}
	codec.Register(codec.Kinds{
		Forms: map[reflect.Type]map[string]codec.Form{
			reflect.TypeFor[admission.Config](): {"MaxWait": codec.Timeout, "RetryRatio": codec.Share},
			reflect.TypeFor[sim.Reload]():       share("Share"),
			reflect.TypeFor[sim.Network]():      share("Loss", "LossBack"),
			reflect.TypeFor[sim.Poison]():       share("Share"),
			reflect.TypeFor[sim.Service]():      share("Errors"),
			reflect.TypeFor[sim.Fault]():        share("Share"),
			reflect.TypeFor[sim.Distribution](): share("Slow"),
		},
		Custom: map[reflect.Type]codec.Custom{
			reflect.TypeFor[sim.Distribution](): {Read: readDistribution, Write: writeDistribution, Whole: true},
		},
	})
}
