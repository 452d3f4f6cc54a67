package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/clients"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/codec/codectest"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/preset"
)

const shopFile = `# yaml-language-server: $schema=policy.schema.json
version: 1
defaults:
  preset: internal-service
  budget: {ratio: 5%}
  attempts: 2
dependencies:
  payments:
    attempts: 3
    deadline: 4s
    p99: 120ms
    rate: 50
    operations:
      charge: {idempotent: false, keyed: true, p99: 400ms}
      status:
        idempotent: true
      refund:
  stock:
  maps.example.com:
    preset: external-api
    budget:
      stock: 0
    breaker:
      failure_rate: 50%
  legacy: {preset: go-retryablehttp, deadline: 20s}
services:
  shop:
    slo: 2s
    calls:
      - stock
      - {dependency: payments, operation: charge, parallel: true}
      - {dependency: maps.example.com, times: 2, parallel: true}
  stock:
  bank:
    provides: [payments]
    server: Lull
    handler: 40s
    visibility: 30s
    deliveries: 5
`

func shop(t testing.TB) *PolicyFile {
	t.Helper()
	f := must(ParsePolicyFile("shop.yaml", []byte(shopFile)))
	return f
}

func withoutPositions(f *PolicyFile) PolicyFile {
	plain := *f
	plain.places = nil
	return plain
}

func TestAPolicyFile(t *testing.T) {
	defaults := preset.InternalService()
	defaults.Budget.Ratio = 0.05
	payments := defaults
	payments.Attempts, payments.Deadline = 3, 4*time.Second
	maps := preset.ExternalAPI()
	maps.Budget = budget.Config{Ratio: 0.05} // the defaults' ratio, since the preset has none, and no stock
	maps.Breaker = breaker.Config{FailureRate: 0.5}
	legacy, _ := PresetPolicy("go-retryablehttp")
	legacy.Deadline = 20 * time.Second // and nothing of the defaults
	want := PolicyFile{
		Version:  1,
		Defaults: Defaults{Preset: "internal-service", Policy: defaults},
		Dependencies: []Dependency{
			{Name: "payments", Policy: payments, P99: 120 * time.Millisecond, Rate: 50, Operations: []Operation{
				{Name: "charge", Idempotent: No, Keyed: true, P99: 400 * time.Millisecond},
				{Name: "status", Idempotent: Yes},
				{Name: "refund"},
			}},
			{Name: "stock", Policy: defaults},
			{Name: "maps.example.com", Preset: "external-api", Policy: maps},
			{Name: "legacy", Preset: "go-retryablehttp", Policy: legacy},
		},
		Services: []Service{
			{Name: "shop", SLO: 2 * time.Second, Calls: []Edge{
				{Dependency: "stock"},
				{Dependency: "payments", Operation: "charge", Parallel: "true"},
				{Dependency: "maps.example.com", Times: 2, Parallel: "true"},
			}},
			{Name: "stock"},
			{Name: "bank", Provides: []string{"payments"}, Server: LullServer, Handler: 40 * time.Second, Visibility: 30 * time.Second, Deliveries: 5},
		},
	}
	f := shop(t)
	if got := withoutPositions(f); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got := f.Policy("payments"); got != payments {
		t.Errorf("the policy of payments is %+v", got)
	}
	if got := f.Policy("something else"); got != defaults {
		t.Errorf("the policy of what is not listed is %+v", got)
	}
}

func TestPositionsAndOrigins(t *testing.T) {
	f := shop(t)
	for _, c := range []struct{ path, want string }{
		{"version", "shop.yaml:2:10 written"},
		{"defaults", "shop.yaml:3:1 written"},
		{"defaults.preset", "shop.yaml:4:11 written"},
		{"defaults.budget", "shop.yaml:5:3 written"},
		{"defaults.budget.ratio", "shop.yaml:5:19 written"},
		{"defaults.deadline", "shop.yaml:4:11 from the preset"},
		{"defaults.breaker.off", "shop.yaml:3:1 unset"},
		{"dependencies", "shop.yaml:7:1 written"},
		{"dependencies.payments", "shop.yaml:8:3 written"},
		{"dependencies.payments.attempts", "shop.yaml:9:15 written"},
		{"dependencies.payments.p99", "shop.yaml:11:10 written"},
		{"dependencies.payments.budget.ratio", "shop.yaml:5:19 from defaults"},
		{"dependencies.payments.budget", "shop.yaml:5:19 from defaults"},
		{"dependencies.payments.attempt_timeout", "shop.yaml:4:11 from the preset of defaults"},
		{"dependencies.payments.breaker.failure_rate", "shop.yaml:8:3 unset"},
		{"dependencies.payments.operations", "shop.yaml:13:5 written"},
		{"dependencies.payments.operations.charge", "shop.yaml:14:7 written"},
		{"dependencies.payments.operations.charge.p99", "shop.yaml:14:53 written"},
		{"dependencies.payments.operations.status.idempotent", "shop.yaml:16:21 written"},
		{"dependencies.payments.operations.status.p99", "shop.yaml:15:7 unset"},
		{"dependencies.payments.operations.refund", "shop.yaml:17:7 written"},
		{"dependencies.stock.attempts", "shop.yaml:6:13 from defaults"},
		{"dependencies.maps.example.com", "shop.yaml:19:3 written"},
		{"dependencies.maps.example.com.attempts", "shop.yaml:20:13 from the preset"},
		{"dependencies.maps.example.com.budget", "shop.yaml:21:5 written"},
		{"dependencies.maps.example.com.budget.ratio", "shop.yaml:5:19 from defaults"},
		{"dependencies.maps.example.com.budget.stock", "shop.yaml:22:14 written"},
		{"dependencies.maps.example.com.limit.in_flight", "shop.yaml:19:3 unset"},
		{"dependencies.legacy.budget.unlimited", "shop.yaml:25:20 from the preset"},
		{"dependencies.legacy.budget.ratio", "shop.yaml:25:3 unset"},
		{"services.shop", "shop.yaml:27:3 written"},
		{"services.shop.slo", "shop.yaml:28:10 written"},
		{"services.shop.calls", "shop.yaml:29:5 written"},
		{"services.shop.calls.0", "shop.yaml:30:9 written"},
		{"services.shop.calls.0.times", "shop.yaml:30:9 unset"},
		{"services.shop.calls.1.operation", "shop.yaml:31:43 written"},
		{"services.stock", "shop.yaml:33:3 written"},
		{"services.bank.provides.0", "shop.yaml:35:16 written"},
		{"services.nowhere.slo", "shop.yaml:26:1 unset"},
		{"nowhere", "shop.yaml:1:1 unset"},
		{"", "shop.yaml:1:1 unset"},
	} {
		if got := fmt.Sprint(f.Position(c.path), " ", f.Origin(c.path)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.path, got, c.want)
		}
	}
	made := &PolicyFile{}
	if got := fmt.Sprint(made.Position("version"), " ", made.Origin("version")); got != "- unset" {
		t.Errorf("made in code: %s", got)
	}
	for data, want := range map[string]string{
		"attempts: 2\n":                       "f:1:11 written",
		"dependencies:\n  f: {attempts: 2}\n": "f:2:17 written",
	} {
		f := must(ParsePolicyFile("f", []byte(data)))
		if got := fmt.Sprint(f.Position("dependencies.f.attempts"), " ", f.Origin("dependencies.f.attempts")); got != want {
			t.Errorf("%q: got %s, want %s", data, got, want)
		}
	}
}

// A preset replaces the preset of the defaults and overrides their fields; it leaves the fields
// that it does not set.
func TestDefaultsAndPresets(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, c := range []struct {
		name, defaults, own string
		want                lull.Policy
	}{
		{"nothing", "{}", "{}", lull.Policy{}},
		{"a field of the defaults", "{attempts: 5}", "{}", lull.Policy{Attempts: 5}},
		{"its own field", "{attempts: 5, deadline: 9s}", "{attempts: 2}", lull.Policy{Attempts: 2, Deadline: 9 * s}},
		{"its own zero", "{attempts: 5, deadline: 9s}", "{attempts: 0}", lull.Policy{Deadline: 9 * s}},
		{"field by field within a part", "{backoff: {base: 50ms, cap: 2s}}", "{backoff: {cap: 1s}}",
			lull.Policy{Backoff: backoff.Schedule{Base: 50 * ms, Cap: s}}},
		{"the defaults' preset", "{preset: internal-service}", "{}", preset.InternalService()},
		{"the defaults' fields over their preset", "{attempts: 3, preset: internal-service}", "{limit: {max_wait: 7ms}}",
			with(preset.InternalService(), func(p *lull.Policy) { p.Attempts, p.Limit.MaxWait = 3, 7*ms })},
		{"its own preset over the defaults' fields", "{attempts: 9, budget: {ratio: 5%}}", "{preset: external-api}",
			with(preset.ExternalAPI(), func(p *lull.Policy) { p.Budget.Ratio = 0.05 })},
		{"nothing of the defaults' preset beside its own", "{preset: internal-service}", "{preset: external-api}", preset.ExternalAPI()},
		{"what the defaults repeat of their preset is theirs", "{preset: internal-service, limit: {in_flight: 256}}", "{preset: external-api}",
			with(preset.ExternalAPI(), func(p *lull.Policy) { p.Limit.InFlight = 256 })},
		{"its fields over its preset", "{attempts: 9}", "{budget: {stock: 0}, preset: external-api, attempts: 1}",
			with(preset.ExternalAPI(), func(p *lull.Policy) { p.Attempts, p.Budget.Stock = 1, 0 })},
		{"its own zero within a part", "{preset: internal-service}", "{limit: {in_flight: 0}, backoff: {base: 0, cap: 0s}}",
			with(preset.InternalService(), func(p *lull.Policy) { p.Limit.InFlight, p.Backoff = 0, backoff.Schedule{} })},
		{"a zero of the defaults over their preset", "{limit: {in_flight: 0}, preset: internal-service}", "{attempts: 1}",
			with(preset.InternalService(), func(p *lull.Policy) { p.Attempts, p.Limit.InFlight = 1, 0 })},
		{"a zero of the defaults under its own preset", "{budget: {stock: 0}}", "{preset: external-api}", preset.ExternalAPI()},
		{"a choice that is zero", "{timeouts: always, nested: always}", "{timeouts: when-answered}", lull.Policy{Nested: lull.NestedAlways}},
		{"a switch that is put back", "{breaker: {off: true}, budget: {unlimited: true}, backoff: {fast_first: true}}",
			"{breaker: {off: false}, budget: {unlimited: false}, backoff: {fast_first: false}}", lull.Policy{}},
		{"what the defaults switched on is off", "{hedge: {attempts: 2}, throttle: {mode: adaptive}, limit: {in_flight: 5}}",
			"{hedge: {attempts: 0}, throttle: {mode: off}, limit: {in_flight: 0}, attempts: 3}", lull.Policy{Attempts: 3}},
		{"no timeout, and the default again", "{deadline: none, attempt_timeout: 1s}", "{deadline: 0, attempt_timeout: none}", lull.Policy{AttemptTimeout: lull.NoTimeout}},
		{"merged into it, and its own", "&d {attempts: 5, budget: {ratio: 5%, stock: 9}}", "{<<: *d, budget: {stock: 0}}",
			lull.Policy{Attempts: 5, Budget: budget.Config{Ratio: 0.05}}},
		{"a switch of a client put back", "{attempts: 9}", "{preset: go-retryablehttp, budget: {unlimited: false}, breaker: {off: false}}",
			with(preset1("go-retryablehttp"), func(p *lull.Policy) { p.Budget.Unlimited, p.Breaker.Off = false, false })},
		{"a client is whole", "{attempts: 9, limit: {in_flight: 5}, nested: always}", "{preset: lull}", lull.Policy{}},
		{"a client and its own fields", "{attempts: 9}", "{preset: none, deadline: 1s}",
			with(preset1("none"), func(p *lull.Policy) { p.Deadline = s })},
		{"clients as defaults give way", "{preset: none, attempts: 2}", "{preset: internal-service}",
			preset.InternalService()},
	} {
		parts := []string{"defaults: " + c.defaults + "\n", "dependencies: {api: " + c.own + "}\n"}
		orders := []string{parts[0] + parts[1], parts[1] + parts[0]}
		if strings.Contains(c.defaults, "&") {
			orders = orders[:1] // an anchor stands before its aliases
		}
		for _, data := range orders {
			f, err := ParsePolicyFile("f", []byte(data))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			if got := f.Policy("api"); got != c.want {
				t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
			}
			again(t, f)
		}
	}
}

func with(p lull.Policy, change func(*lull.Policy)) lull.Policy {
	change(&p)
	return p
}

func preset1(name string) lull.Policy {
	p, ok := PresetPolicy(name)
	if !ok {
		panic(name)
	}
	return p
}

// again writes f, reads it and writes it: nothing is lost, and the second text is the
// first.
func again(t testing.TB, f *PolicyFile) string {
	t.Helper()
	data, err := FormatPolicyFile(f)
	if err != nil {
		t.Fatalf("%+v: %v", withoutPositions(f), err)
	}
	g, err := ParsePolicyFile("f", data)
	if err != nil {
		t.Fatalf("read again: %v\nfrom\n%s", err, data)
	}
	if got, want := withoutPositions(g), withoutPositions(f); !reflect.DeepEqual(got, want) {
		t.Fatalf("read again:\n%+v\nwant\n%+v\nfrom\n%s", got, want, data)
	}
	more, err := FormatPolicyFile(g)
	if err != nil || string(more) != string(data) {
		t.Fatalf("written again, %v:\n%s\nwant\n%s", err, more, data)
	}
	return string(data)
}

func TestAPolicyFileIsWrittenAndReadAgain(t *testing.T) {
	golden.File(t, "testdata/shop.yaml", again(t, shop(t)))
}

func TestEveryPresetIsWrittenByName(t *testing.T) {
	for _, name := range Presets() {
		p := preset1(name)
		f := &PolicyFile{Dependencies: []Dependency{{Name: "api", Preset: name, Policy: p}}}
		if got, want := again(t, f), "dependencies:\n  api:\n    preset: "+name+"\n"; got != want {
			t.Errorf("%s is written as\n%s", name, got)
		}
	}
}

// Names may have dots in them, and be the beginning of others.
func TestPositionsOfNamesWithDots(t *testing.T) {
	f := must(ParsePolicyFile("f", []byte("defaults:\n  attempts: 2\ndependencies:\n  a.b:\n  a: {attempts: 3}\n  a.budget: {preset: external-api}\n")))
	for path, want := range map[string]string{
		"dependencies.a.b":                   "f:4:3 written",
		"dependencies.a.b.attempts":          "f:2:13 from defaults",
		"dependencies.a.attempts":            "f:5:17 written",
		"dependencies.a.deadline":            "f:5:3 unset",
		"dependencies.a.budget.budget.stock": "f:6:22 from the preset",
	} {
		if got := fmt.Sprint(f.Position(path), " ", f.Origin(path)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestPolicyFilesThatCannotBeWritten(t *testing.T) {
	nan := lull.Policy{Budget: budget.Config{Ratio: math.NaN()}}
	for _, c := range []struct {
		f    PolicyFile
		want string
	}{
		{PolicyFile{}, "config: a policy file with nothing in it"},
		{PolicyFile{Version: 2}, "config: version is 2: want 1"},
		{PolicyFile{Defaults: Defaults{Policy: nan}}, "config: defaults.budget.ratio is NaN, which a file cannot hold"},
		{PolicyFile{Defaults: Defaults{Preset: "x"}}, `config: defaults.preset is "x": want ` + allowedPreset(clients.All())},
		{PolicyFile{Dependencies: []Dependency{{Name: "a", Preset: "grpc"}}}, `config: dependencies.a.preset is "grpc": want ` + allowedPreset(clients.All())},
		{PolicyFile{Defaults: Defaults{Policy: preset.ExternalAPI()}, Dependencies: []Dependency{{Name: "a", Policy: nan}}},
			"config: dependencies.a.budget.ratio is NaN, which a file cannot hold"},
		{PolicyFile{Dependencies: []Dependency{{Name: "a"}, {Name: "a"}}}, `config: the name "a" under dependencies: want names of 1 to 100 printable characters, all different`},
		{PolicyFile{Services: []Service{{}}}, `config: the name "" under services: want names of 1 to 100 printable characters, all different`},
		{PolicyFile{Dependencies: []Dependency{{Name: "a", Operations: []Operation{{Name: " "}}}}},
			`config: the name " " under dependencies.a.operations: want names of 1 to 100 printable characters, all different`},
		{PolicyFile{Dependencies: []Dependency{{Name: "a", Operations: []Operation{{Name: "o", Idempotent: 9}}}}},
			"config: dependencies.a.operations.o.idempotent is answer(9), which a file cannot hold"},
		{PolicyFile{Services: []Service{{Name: "s", Calls: []Edge{{Dependency: "\xff"}}}}}, "config: services.s.calls.0 is \xff, which a file cannot hold"},
	} {
		if _, err := FormatPolicyFile(&c.f); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// Any file at all, of valid policies or not, is written and read as the same.
func TestAnyPolicyFileIsWrittenAndReadAgain(t *testing.T) {
	t.Parallel()
	seed := seed.Fresh(t)
	random := rand.New(rand.NewPCG(seed, 0))
	const n = 200
	cut := 0
	for range n {
		f := anyFile(random)
		data, err := FormatPolicyFile(&f)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r := newFileReader("f")
		r.root(r.Document(data)) // with mistakes, since f is not valid
		if r.Full() {            // of so many that the rest is not read
			cut++
			continue
		}
		if got := withoutPositions(&r.file); !reflect.DeepEqual(got, f) {
			t.Fatalf("seed %d: read again\n%+v\nwant\n%+v\nfrom\n%s", seed, got, f, data)
		}
	}
	if cut > n/10 {
		t.Errorf("%d of %d files were not read to their end", cut, n)
	}
}

// anyFile holds anything that a file can hold.
func anyFile(random *rand.Rand) PolicyFile {
	f := PolicyFile{Version: random.IntN(2)}
	codectest.Fill(random, reflect.ValueOf(&f.Defaults.Policy).Elem())
	f.Defaults.Preset = anyPreset(random)
	if random.IntN(2) == 0 {
		preset, _ := PresetPolicy(f.Defaults.Preset)
		f.Defaults.Policy = mixed(random, preset, f.Defaults.Policy)
	}
	for i := range 1 + random.IntN(4) {
		d := Dependency{Name: fmt.Sprint("d.", i), Preset: anyPreset(random)}
		codectest.Fill(random, reflect.ValueOf(&d.Policy).Elem())
		own, _ := PresetPolicy(d.Preset)
		for _, other := range []lull.Policy{f.Defaults.Policy, own} {
			if random.IntN(2) == 0 {
				d.Policy = mixed(random, other, d.Policy)
			}
		}
		codectest.Fill(random, reflect.ValueOf(&d.P99).Elem())
		codectest.Fill(random, reflect.ValueOf(&d.Rate).Elem())
		codectest.Fill(random, reflect.ValueOf(&d.Operations).Elem())
		for k := range d.Operations {
			d.Operations[k].Name = fmt.Sprint(k)
		}
		f.Dependencies = append(f.Dependencies, d)
	}
	codectest.Fill(random, reflect.ValueOf(&f.Services).Elem())
	for i := range f.Services {
		f.Services[i].Name = fmt.Sprint(i)
	}
	return f
}

func anyPreset(random *rand.Rand) string {
	if random.IntN(2) == 0 {
		return ""
	}
	all := Presets()
	return all[random.IntN(len(all))]
}

// mixed has each of its leaves from the one or the other.
func mixed(random *rand.Rand, a, b lull.Policy) lull.Policy {
	for _, l := range policyLeaves() {
		if random.IntN(2) == 0 {
			l.of(&a).Set(l.of(&b))
		}
	}
	return a
}

// The policy file of docs/files.md is one.
func TestTheFileInTheDocs(t *testing.T) {
	page := must(os.ReadFile("../docs/files.md"))
	_, text, _ := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "```yaml\n# yaml-language-server: $schema="+SchemaURL)
	text, _, _ = strings.Cut(text, "```\n")
	f, err := ParsePolicyFile("retry.yaml", []byte("#"+text))
	if err != nil || len(f.Dependencies) != 2 || len(f.Services) != 2 {
		t.Fatalf("%+v, %v, from\n%s", f, err, text)
	}
	// The settings that it has there.
	maps := f.Policy("maps")
	if maps.Attempts != 4 || maps.Budget.Stock != 3 || maps.Budget.Ratio != 0.05 || maps.Limit.InFlight != 16 {
		t.Errorf("maps is %+v", maps)
	}
}

func FuzzParsePolicyFile(f *testing.F) {
	f.Add([]byte(shopFile))
	f.Add(must(os.ReadFile("testdata/policy-mistakes.yaml")))
	f.Add(must(os.ReadFile("testdata/policies.yaml")))
	f.Add([]byte("version: 1\nservices: {a: {calls: [b, {dependency: c, parallel: x}], provides: [q]}}\n"))
	f.Add([]byte("defaults: &a {preset: hedged, attempts: 1}\ndependencies: {b: *a, c: {<<: *a, preset: lull}}\n"))
	for _, seed := range []string{
		"\ufeffattempts: 3\r\nbackoff:\r\n  base: 1s\r\n", "attempts: 3 # a\u2028deadline: 1s\n", "deadline: 1s # a\rattempts: 3\n",
		"attempts: !!int 3\n", "!x attempts: 3\n", "attempts: 3\n---\nattempts: 4\n", "%YAML 1.1\n---\nattempts: 3\n...\n",
		"limit: &a {<<: *a}\n", "dependencies: {a: &a {budget: {ratio: 10}}, b: {<<: [*a, {attempts: 2}], <<: *a}}\n",
		"attempts: ~\nbudget: null\nbreaker:\n", "attempts:\t3\n", "backoff: {\n\tbase: 1s}\n", "deadline: >-\n  3s\n", "\"attempts\": 1_0\n? deadline\n: none\n",
		"a: [[[[[[[[[[[[", "hedge: {attempts: 2, delay: at-once, share: 100%}\n", "defaults: {limit: {in_flight: 5}}\ndependencies: {a: {preset: lull}, a.limit: {in_flight: {limit: 0}}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParsePolicyFile("f", data)
		oneLineOn(t, data, file, err)
		if err != nil {
			codectest.Located(t, err)
			return
		}
		if !strings.Contains(string(data), "\r") {
			crlf, err := ParsePolicyFile("f", []byte(strings.ReplaceAll(string(data), "\n", "\r\n")))
			if err != nil || !reflect.DeepEqual(crlf, file) {
				t.Errorf("with the line ends of Windows: %v\n%+v\nwant\n%+v", err, crlf, file)
			}
		}
		for _, d := range file.Dependencies {
			for _, l := range policyLeaves() {
				path := codec.Under("dependencies", d.Name, l.path)
				if p := file.Position(path); p.Line < 1 || p.Column < 1 {
					t.Errorf("%s is at %v", path, p)
				}
				if v := l.of(&d.Policy); !v.IsZero() && file.Origin(path) == Unset {
					t.Errorf("%s is %v, and nobody says so", path, v)
				}
			}
		}
		if !reflect.DeepEqual(withoutPositions(file), PolicyFile{}) {
			again(t, file)
		}
	})
}

// oneLineOn fails unless a comment above data moves everything by a line and does nothing
// else, given what has been read from data. So lines are counted as an editor counts them.
func oneLineOn(t *testing.T, data []byte, file *PolicyFile, err error) {
	t.Helper()
	if start := bytes.TrimLeft(data, " "); bytes.HasPrefix(start, []byte("\ufeff")) || bytes.HasPrefix(start, []byte("\t")) || len(data) > codec.MaxBytes-2 {
		return // what is allowed in the first place only, or everywhere else
	}
	moved, movedErr := ParsePolicyFile("f", append([]byte("#\n"), data...))
	if err != nil {
		var want, got Mistakes
		if errors.As(err, &want); !errors.As(movedErr, &got) || len(got) != len(want) {
			t.Fatalf("below a comment: %v\nwant\n%v", movedErr, err)
		}
		for i, m := range want {
			whole := m.Path == "" && m.Line == 1 && m.Column == 1 // of a file that is empty
			if g := got[i]; !whole && g.Line != m.Line+1 || g.Column != m.Column || g.Path != m.Path {
				t.Errorf("below a comment: %v\nwant\n%v", g, m)
			}
		}
		return
	}
	if movedErr != nil || !reflect.DeepEqual(withoutPositions(moved), withoutPositions(file)) {
		t.Fatalf("below a comment: %v\n%+v\nwant\n%+v", movedErr, moved, file)
	}
	for path, at := range file.places.at {
		if at.Line++; moved.places.at[path] != at {
			t.Errorf("below a comment %s is at %v, want %v", path, moved.places.at[path], at)
		}
	}
}

// must is for what a test needs before it begins.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// done is must for what returns nothing else.
func done(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
