package scenario

import (
	"reflect"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/lab/sim"
)

func TestEveryFieldCanBeReadAndWritten(t *testing.T) {
	// The numbers of which somebody has decided that they are no shares.
	plainNumbers := map[string]bool{
		"Schedule.Factor": true, "Config.Floor": true, "Config.Stock": true, "RampPoint.Factor": true,
		"Arrivals.Rate": true, "Rate.PerSecond": true, "Distribution.Sigma": true, "Bar.Weight": true, "Fault.Cold": true,
		"Config.K": true, "Config.MinRate": true, "Config.Factor": true, "Cache.Skew": true,
	}
	var walk func(t2 reflect.Type, path string)
	seen := map[reflect.Type]bool{}
	walk = func(typ reflect.Type, path string) {
		switch typ.Kind() {
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			keys := map[string]bool{"file": typ == reflect.TypeFor[sim.Distribution](), "preset": typ == reflect.TypeFor[lull.Policy]()}
			check.Equal(t, len(codec.Members(typ)), typ.NumField(), "%s: fields that are members", path)
			for _, m := range codec.Members(typ) {
				if keys[m.Key] {
					t.Errorf("%s has two keys %s", path, m.Key)
				}
				keys[m.Key] = true
				f := typ.FieldByIndex(m.Index)
				name := typ.Name() + "." + m.Name
				if f.Type.Kind() == reflect.Float64 && (m.Form == codec.Share) == plainNumbers[name] {
					t.Errorf("is %s a share? Say so in forms or in this test", name)
				}
				walk(f.Type, codec.Field(path, m.Key))
			}
		case reflect.Slice:
			walk(typ.Elem(), path)
		default:
			if typ.Kind() == reflect.Uint8 && len(codec.EnumNames(typ)) < 2 {
				t.Errorf("%s: %v has no names", path, typ)
			}
			v := reflect.New(typ).Elem()
			codec.Scalar("?", v, codec.Plain) // panics if it cannot read the type
			new(codec.Writer).Node(v, "", codec.Plain)
		}
	}
	walk(reflect.TypeFor[sim.Scenario](), "")
	walk(reflect.TypeFor[lull.Policy](), "")
}
