package scenario

import (
	"math/rand/v2"
	"os"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/lullgo/lull/config/syntax"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lab/sim"

	"github.com/lullgo/lull/internal/codec/codectest"
)

// What is read without a mistake is written and read again as the same; and
// nothing panics.
func FuzzParse(f *testing.F) {
	for _, name := range must.Have(library.ReadDir("scenarios")) {
		f.Add(must.Have(library.ReadFile("scenarios/" + name.Name())))
	}
	f.Add(everything)
	f.Add(must.Have(os.ReadFile("testdata/scenario-mistakes.yaml")))
	files := fstest.MapFS{"l.csv": {Data: []byte("10ms,700\n20ms,250\n")}, "bad.csv": {Data: []byte("1;2\nx,y\n")}}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parse("f", data, files)
		if err != nil {
			codectest.Located(t, err)
			return
		}
		text := formatted(t, s)
		again, err := parse("f", []byte(text), nil)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("read again: %v\n%+v\nwant\n%+v\nfrom\n%s", err, again, s, text)
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
	})
}

// Any scenario at all, valid or not, is written and read as the same.
func TestAnyScenarioIsWrittenAndReadAgain(t *testing.T) {
	t.Parallel()
	seed := seed.Fresh(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var s, again sim.Scenario
		codectest.Fill(random, reflect.ValueOf(&s).Elem())
		text := formatted(t, s)
		r := codec.NewReader(syntax.ParseOwn, "f", nil)
		if n := r.Document([]byte(text)); n != nil {
			r.Decode(n, reflect.ValueOf(&again).Elem(), "", codec.Plain)
		}
		if err := r.Mistakes.Err(); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("seed %d: read again: %v\n%+v\nwant\n%+v\nfrom\n%s", seed, err, again, s, text)
		}
	}
}
