package convert

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/internal/must"
)

func seeds(f *testing.F) {
	for _, pattern := range []string{"testdata/golden/*.yaml", "testdata/golden/*.json", "testdata/golden/*.out", "testdata/mistakes/*.yaml", "testdata/mistakes/*.json"} {
		names := must.Have(filepath.Glob(pattern))
		if len(names) == 0 {
			f.Fatal(pattern)
		}
		for i, name := range names {
			if testing.Short() && i%4 > 0 {
				continue // all of them, in each format, are for the long run: they are the same every time, on one goroutine
			}
			f.Add(must.Have(os.ReadFile(name)))
		}
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1e300, "retryableStatusCodes": [14]}}]}`))
	f.Add([]byte("retry_on: 5xx\nnum_retries: 1e3\nretry_back_off: {base_interval: 9223372036s}"))
}

// fuzzed reads data as format. Either it is refused, with places, or the result is valid, here and
// in each format, and the same after a second conversion.
func fuzzed(t *testing.T, data []byte, from *Format) {
	in := []File{{"fuzz", data}}
	out, err := Convert(in, Lull, Options{From: from})
	if errors.Is(err, ErrNothing) {
		return
	}
	if err != nil {
		mistakes, ok := errors.AsType[config.Mistakes](err)
		if !ok {
			t.Fatalf("an error that is no mistake of the file: %v", err)
		}
		for _, m := range mistakes {
			if m.Found == "" {
				t.Fatalf("a mistake that says nothing: %+v", m)
			}
		}
		return
	}
	file, err := config.ParsePolicyFile("out", out.Data)
	if err != nil {
		t.Fatalf("what was written is no policy file: %v\n%s", err, out.Data)
	}
	for _, e := range out.Report {
		if e.Path == "" || e.Why == "" || e.File != "fuzz" {
			t.Fatalf("an entry that says nothing: %+v", e)
		}
	}
	for _, to := range []Format{GRPC, Istio, Envoy, Gateway, EnvoyGateway, Dapr} {
		o := Options{}
		if to == GRPC {
			o.Only = file.Dependencies[0].Name
		}
		there, err := Convert([]File{{"out", out.Data}}, to, o)
		if err != nil {
			t.Fatalf("to %v: %v\n%s", to, err, out.Data)
		}
		direct, err := Convert(in, to, Options{From: from, Only: o.Only})
		if err != nil {
			t.Fatalf("directly to %v: %v", to, err)
		}
		for _, written := range [][]byte{there.Data, direct.Data} {
			back, err := Convert([]File{{"there", written}}, Lull, Options{From: &to})
			if err != nil {
				t.Fatalf("what was written for %v is not valid: %v\n%s", to, err, written)
			}
			again, err := Convert([]File{{"back", back.Data}}, to, o2(back.Data, to))
			if err != nil {
				t.Fatalf("from %v and back: %v\n%s", to, err, back.Data)
			}
			if bytes.Equal(written, there.Data) && to == Istio && !bytes.Equal(again.Data, written) {
				t.Fatalf("%v: written\n%s\nand again\n%s", to, written, again.Data)
			}
		}
	}
}

// o2 chooses the one dependency that a service config is of.
func o2(data []byte, to Format) Options {
	file, err := config.ParsePolicyFile("back", data)
	if to != GRPC || err != nil {
		return Options{}
	}
	return Options{Only: file.Dependencies[0].Name}
}

// fuzz reads the seeds, and what becomes of them, as format; nil lets each file say its own.
func fuzz(f *testing.F, format *Format) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) { fuzzed(t, data, format) })
}

func FuzzConvert(f *testing.F)      { fuzz(f, nil) }
func FuzzEnvoy(f *testing.F)        { fuzz(f, new(Envoy)) }
func FuzzIstio(f *testing.F)        { fuzz(f, new(Istio)) }
func FuzzGRPC(f *testing.F)         { fuzz(f, new(GRPC)) }
func FuzzGateway(f *testing.F)      { fuzz(f, new(Gateway)) }
func FuzzEnvoyGateway(f *testing.F) { fuzz(f, new(EnvoyGateway)) }
func FuzzDapr(f *testing.F)         { fuzz(f, new(Dapr)) }

// FuzzPolicy converts the file of any policy to every format and back.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte("attempts: 3\ndeadline: 2s\nbackoff: {jitter: equal, floor: 1ms}"))
	f.Add([]byte("hedge: {attempts: 3, delay: -1ns, share: -1}\nbreaker: {consecutive: 5, consecutive_for: -1ns, open_for: 1ns, open_jitter: 10}"))
	f.Add([]byte("budget: {window: 1h, floor: 1M, ratio: 1e-5}\nthrottle: {mode: cubic}\nlimit: {in_flight: 2147483647}"))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzed(t, data, new(Lull)) })
}

// FuzzParse: text becomes a tree or an error, and a tree written as JSON is read as the
// same.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := parse("", data)
		if err != nil {
			return
		}
		for _, d := range docs {
			text := d.JSON()
			again, err := parse("", text)
			if err != nil && d.Kind >= 4 { // a list or a mapping; YAML's scalars may be no JSON
				if !bytes.Contains(text, []byte(".nan")) && !bytes.Contains(text, []byte(".inf")) && !odd(text) {
					t.Fatalf("%q is written as %s: %v", data, text, err)
				}
				continue
			}
			if err == nil && len(again) == 1 && !bytes.Equal(again[0].JSON(), text) {
				t.Fatalf("%s is read as %s", text, again[0].JSON())
			}
		}
	})
}

// odd: numbers that YAML has and JSON has not, such as 0x1F, 1_000 and .5.
func odd(text []byte) bool {
	_, err := Convert([]File{{"x", text}}, Lull, Options{})
	return err != nil
}
