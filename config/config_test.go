package config

import (
	"errors"
	"reflect"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/sim"
)

// located fails unless err is Mistakes that all have a place.
func located(t *testing.T, err error) Mistakes {
	t.Helper()
	var mistakes Mistakes
	if !errors.As(err, &mistakes) {
		t.Fatalf("got %v (%T), want Mistakes", err, err)
	}
	for _, m := range mistakes {
		if m.File == "" || m.Line < 1 || m.Column < 1 || m.Found == "" {
			t.Errorf("%+v has no place or says nothing", m)
		}
	}
	return mistakes
}

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
			keys := map[string]bool{"file": typ == distributionType, "preset": typ == policyType}
			if len(members(typ)) != typ.NumField() {
				t.Errorf("%s has fields that are not exported", path)
			}
			for _, m := range members(typ) {
				if keys[m.key] {
					t.Errorf("%s has two keys %s", path, m.key)
				}
				keys[m.key] = true
				f := typ.FieldByIndex(m.index)
				name := typ.Name() + "." + m.name
				if f.Type.Kind() == reflect.Float64 && (m.form == share) == plainNumbers[name] {
					t.Errorf("is %s a share? Say so in forms or in this test", name)
				}
				walk(f.Type, field(path, m.key))
			}
			for name := range forms[typ] {
				if _, ok := typ.FieldByName(name); !ok {
					t.Errorf("%v has no field %s", typ, name)
				}
			}
		case reflect.Slice:
			walk(typ.Elem(), path)
		default:
			if typ.Kind() == reflect.Uint8 && len(enumNames(typ)) < 2 {
				t.Errorf("%s: %v has no names", path, typ)
			}
			v := reflect.New(typ).Elem()
			scalar("?", v, plain) // panics if it cannot read the type
			format(v, plain)
		}
	}
	walk(reflect.TypeFor[sim.Scenario](), "")
	walk(reflect.TypeFor[lull.Policy](), "")
}
