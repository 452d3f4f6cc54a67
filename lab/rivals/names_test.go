package rivals_test

import (
	"strings"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/golden"
)

// The schema of package config has the names of this file, as the program lull takes them.
func TestNamesInPolicyFiles(t *testing.T) {
	names := config.Presets()
	golden.File(t, "../../config/testdata/clients.txt", strings.Join(names[7:], "\n")+"\n")
	for _, name := range names {
		policies, err := config.ParsePolicies("f", []byte("dependencies: {api: {preset: "+name+"}}"))
		want, ok := config.PresetPolicy(name)
		if err != nil || !ok || policies[0].Policy != want {
			t.Errorf("%s: %+v, %v, want %+v", name, policies, err, want)
		}
		f := &config.PolicyFile{Dependencies: []config.Dependency{{Name: "api", Preset: name, Policy: want}}}
		got, err := config.FormatPolicyFile(f)
		if want := "dependencies:\n  api:\n    preset: " + name + "\n"; err != nil || string(got) != want {
			t.Errorf("%s is written as\n%s%v", name, got, err)
		}
	}
}

// What a client does not repeat its policy does not. What a policy cannot describe is none.
func TestPoliciesOfClients(t *testing.T) {
	for name, want := range map[string]engine.TimeoutRetries{"istio": lull.TimeoutsNever, "go-retryablehttp": lull.TimeoutsAlways} {
		if p, _ := config.PresetPolicy(name); p.Timeouts != want {
			t.Errorf("%s repeats timeouts: %v", name, p.Timeouts)
		}
	}
	for _, name := range []string{"aws-standard-2.1", "cenkalti", "queue", "external", ""} {
		if p, ok := config.PresetPolicy(name); ok {
			t.Errorf("%s is %+v", name, p)
		}
	}
}
