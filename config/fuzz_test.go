package config

import (
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/codec/codectest"
	"github.com/lullgo/lull/internal/seed"
)

func FuzzParsePolicies(f *testing.F) {
	f.Add(must(os.ReadFile("testdata/policy-mistakes.yaml")))
	f.Add(must(os.ReadFile("testdata/policies.yaml")))
	f.Add([]byte("preset: external-api\nbudget: {ratio: 20 %}\n"))
	f.Add([]byte("dependencies:\n  a: &a {attempts: 2}\n  b: {<<: [*a, *a], deadline: none}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policies, err := ParsePolicies("f", data)
		if err != nil {
			codectest.Located(t, err)
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
func FuzzSetPolicy(f *testing.F) {
	for _, seed := range []string{"attempts=4", "backoff={base: 1s}", "breaker={<<: {}}", "preset=external-api"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, assignment string) {
		p := full
		if err := SetPolicy(&p, assignment); err != nil && p != full {
			t.Errorf("%q: %v, but it changed", assignment, err)
		}
	})
}

// Any policy at all, valid or not, is written and read as the same.
func TestAnyPolicyIsWrittenAndReadAgain(t *testing.T) {
	t.Parallel()
	seed := seed.Fresh(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var p lull.Policy
		codectest.Fill(random, reflect.ValueOf(&p).Elem())
		data, err := FormatPolicies([]NamedPolicy{{"p", p}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		fr := newFileReader("f")
		fr.root(fr.Document(data))
		got := fr.file.Dependencies // with mistakes, since p is not valid
		if len(got) != 1 || got[0].Policy != p {
			t.Fatalf("seed %d: read again: %+v\nwant\n%+v\nfrom\n%s", seed, got, p, data)
		}
	}
}
