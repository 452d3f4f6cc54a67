package config

import (
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/sim"
)

// What is read without a mistake is written and read again as the same; and
// nothing panics.
func FuzzParseScenario(f *testing.F) {
	names, err := library.ReadDir("scenarios")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := library.ReadFile("scenarios/" + name.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(everything))
	addFile(f, "testdata/scenario-mistakes.yaml")
	files := fstest.MapFS{"l.csv": {Data: []byte("10ms,700\n20ms,250\n")}, "bad.csv": {Data: []byte("1;2\nx,y\n")}}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseScenario("f", data, files)
		if err != nil {
			located(t, err)
			return
		}
		text := formatted(t, s)
		again, err := parseScenario("f", []byte(text), nil)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("read again: %v\n%+v\nwant\n%+v\nfrom\n%s", err, again, s, text)
		}
	})
}

func FuzzParsePolicies(f *testing.F) {
	addFile(f, "testdata/policy-mistakes.yaml")
	addFile(f, "testdata/policies.yaml")
	f.Add([]byte("preset: external-api\nbudget: {ratio: 20 %}\n"))
	f.Add([]byte("policies:\n  a: &a {attempts: 2}\n  b: {<<: [*a, *a], deadline: none}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policies, err := ParsePolicies("f", data)
		if err != nil {
			located(t, err)
			return
		}
		text, err := FormatPolicies(policies)
		if err != nil {
			// A bare policy has the name of the file, here "f"; all others are checked.
			t.Fatal(err)
		}
		again, err := ParsePolicies("f", text)
		if err != nil || !reflect.DeepEqual(again, policies) {
			t.Errorf("read again: %v\n%+v\nwant\n%+v\nfrom\n%s", err, again, policies, text)
		}
	})
}

// An assignment is read or refused; refused ones change nothing, and nothing
// panics.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{"services.db.eu.time={kind: exponential, mean: 1s}", "fleets.0.arrivals.ramp=[{at: 1s, factor: 2}]", "services.0={<<: {}}", "title=x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, assignment string) {
		s := two()
		if err := Set(&s, assignment); err != nil && !reflect.DeepEqual(s, two()) {
			t.Errorf("%q: %v, but it changed", assignment, err)
		}
		p := full
		if err := SetPolicy(&p, assignment); err != nil && p != full {
			t.Errorf("%q: %v, but it changed", assignment, err)
		}
	})
}

// Any scenario and policy at all, valid or not, is written and read as the same.
func TestAnyValueIsWrittenAndReadAgain(t *testing.T) {
	t.Parallel()
	seed := seed.Fresh(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var s sim.Scenario
		fill(random, reflect.ValueOf(&s).Elem())
		text := formatted(t, s)
		r := newReader("f", nil)
		var again sim.Scenario
		if n := r.document([]byte(text)); n != nil {
			r.decode(n, reflect.ValueOf(&again).Elem(), "", plain)
		}
		if err := r.Mistakes.Err(); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("seed %d: read again: %v\n%+v\nwant\n%+v\nfrom\n%s", seed, err, again, s, text)
		}

		var p lull.Policy
		fill(random, reflect.ValueOf(&p).Elem())
		data, err := FormatPolicies([]NamedPolicy{{"p", p}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		fr := newFileReader("f")
		fr.root(fr.document(data))
		got := fr.file.Dependencies // with mistakes, since p is not valid
		if len(got) != 1 || got[0].Policy != p {
			t.Fatalf("seed %d: read again: %+v\nwant\n%+v\nfrom\n%s", seed, got, p, data)
		}
	}
}

// fill sets v to anything that a file can hold; a third of it stays zero.
func fill(random *rand.Rand, v reflect.Value) {
	if random.IntN(3) == 0 {
		return
	}
	texts := []string{"a", "none", "null", "1", "true", "a: b", " a ", "a\nb", "a\n", "\n", "\n a", "ä", "\u0085", "\u2028x", "\t", "\"'", "#", "\r\n", "\x00", "\x7f", "\ufeff", "- a", "?", "~", "<<", "x  y", "...", "---", "%A"}
	switch t := v.Type(); {
	case t.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(random, v.Field(i))
		}
	case t.Kind() == reflect.Slice:
		if n := random.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(t, n, n))
			for i := range n {
				fill(random, v.Index(i))
			}
		}
	case t.Kind() == reflect.String:
		v.SetString(texts[random.IntN(len(texts))] + texts[random.IntN(len(texts))])
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	case t.Kind() == reflect.Float64:
		for {
			x := math.Float64frombits(random.Uint64())
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				v.SetFloat(x)
				return
			}
		}
	case t.Kind() == reflect.Uint8:
		v.SetUint(uint64(random.IntN(len(enumNames(t))))) // of an Answer too
	default: // whole numbers and durations
		v.SetInt(int64(random.Uint64()) >> random.IntN(64))
	}
}

func addFile(f *testing.F, path string) {
	f.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
}
