package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/config"
)

// attempts4j are the attempts and waits of each dependency that the files make.
func attempts4j(t *testing.T, files ...File) (string, Report) {
	t.Helper()
	set, report, err := Read(files, Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, files[0].Data)
	}
	var all []string
	for _, d := range set.File.Dependencies {
		all = append(all, fmt.Sprintf("%s: %d %v", d.Name, d.Policy.Attempts, d.Policy.Backoff.Base))
	}
	slices.Sort(all)
	return strings.Join(all, ", "), report
}

// Later documents override earlier ones, and those of a profile count with it alone.
func TestProfilesOfSpring(t *testing.T) {
	const (
		base = "resilience4j.retry: {instances: {a: {maxAttempts: 3, waitDuration: 200ms}}}\n"
		prod = "spring.config.activate.on-profile: prod\n"
		more = "resilience4j.retry.instances.a: {maxAttempts: 9}\n"
	)
	for text, want := range map[string]string{
		base:                         "a: 3 200ms",
		base + "---\n" + more:        "a: 9 200ms",
		more + "---\n" + base:        "a: 3 200ms",
		base + "---\n" + prod + more: "a (prod): 9 200ms, a: 3 200ms",
		prod + more + "---\n" + base: "a: 3 200ms", // what comes later counts
		base + "---\n" + prod + "server: {port: 8080}\n":                             "a: 3 200ms",
		"server: {port: 8080}\n---\n" + base:                                         "a: 3 200ms",
		"defaults: {x: 1}\nservices: {b: {calls: 3}}\n---\n" + base:                  "a: 3 200ms",
		base + "---\nspring: {config: {activate: {on-profile: prod}}}\n" + more:      "a (prod): 9 200ms, a: 3 200ms",
		base + "---\nspring: {config.activate: {onProfile: [prod, test]}}\n" + more:  "a (prod): 9 200ms, a: 3 200ms",
		base + "---\nspring.profiles: prod\n" + more:                                 "a (prod): 9 200ms, a: 3 200ms",
		base + "---\nspring.profiles.active: prod\n" + more:                          "a: 9 200ms",
		base + "---\nspring.config.activate.on-profile: '!prod'\n" + more:            "a (prod): 3 200ms, a: 9 200ms",
		base + "---\nspring.config.activate.on-profile: default\n" + more:            "a: 9 200ms",
		base + "---\nspring.config.activate.on-profile: eu & (prod | test)\n" + more: "a (eu, prod): 9 200ms, a: 3 200ms",
		base + "---\nspring.config.activate.on-cloud-platform: kubernetes\n" + more:  "a (kubernetes): 9 200ms, a: 3 200ms",
		prod + base: "a: 3 200ms", // in no other way
		prod + base + "---\nspring.config.activate.on-profile: test\n" + more:                                                                                     "a (prod): 3 200ms, a (test): 9 500ms",
		base + "---\n" + prod + "resilience4j.retry.configs.default.waitDuration: 1s\nresilience4j.retry.instances.b: {}\n":                                       "a: 3 200ms, b: 3 1s",
		"resilience4j.retry: {configs: {default: {maxAttempts: 4}}, instances: {a: {}}}\n---\n" + prod + "resilience4j.retry.configs.default: {maxAttempts: 6}\n": "a (prod): 6 500ms, a: 4 500ms",
		base + "---\n" + prod + "resilience4j:\n  retry:\n    instances:\n      a:\n        max-attempts: 9\n":                                                    "a (prod): 9 200ms, a: 3 200ms",
		base + "---\n" + prod + "resilience4j.retry.instances.a.maxAttempts: 9\n":                                                                                 "a (prod): 9 200ms, a: 3 200ms",
		base + "---\n" + prod + "resilience4j: {retry: {backends: {b.c: {maxAttempts: 2}}}}\n":                                                                    "a: 3 200ms, b.c: 2 500ms",
		base + "---\napiVersion: v1\nkind: Service\n---\n" + prod + more:                                                                                          "a (prod): 9 200ms, a: 3 200ms",
		"x: &x {maxAttempts: 7}\n" + base + "---\n" + prod + "y: &y {maxAttempts: 8}\nresilience4j.retry.instances.a: {<<: *y}\n":                                 "a (prod): 8 200ms, a: 3 200ms",
	} {
		if got, report := attempts4j(t, File{"application.yml", []byte(text)}); got != want {
			t.Errorf("%s, want %s of\n%s\n%s", got, want, text, report)
		}
	}
	for _, wrong := range []string{"a & b | c", "(a", "a b", "!", "''", "a)", "{x: y}"} {
		_, _, err := Read([]File{{"application.yml", []byte(base + "---\nspring.config.activate.on-profile: " + wrong + "\n" + more)}}, Options{})
		if (err == nil) != (wrong == "{x: y}") { // which is something else
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// A file of a profile counts after all others of its application, whatever the order on the command
// line. Files in other folders are of other applications.
func TestFilesOfSpring(t *testing.T) {
	file := func(name, attempts string) File {
		return File{name, []byte("resilience4j.retry.instances.a: {maxAttempts: " + attempts + "}\n")}
	}
	base := File{"x/application.yml", []byte("resilience4j.retry.instances.a: {maxAttempts: 3, waitDuration: 200ms}\n---\nspring.config.activate.on-profile: prod\nresilience4j.retry.instances.a.maxAttempts: 4\n")}
	for _, c := range []struct {
		files []File
		want  string
	}{
		{[]File{base}, "a (prod): 4 200ms, a: 3 200ms"},
		{[]File{base, file("x/application-prod.yaml", "9")}, "a (prod): 9 200ms, a: 3 200ms"},
		{[]File{file("x/application-prod.yml", "9"), base}, "a (prod): 9 200ms, a: 3 200ms"},
		{[]File{base, file("x/application-eu-1.yml", "5")}, "a (eu-1): 5 200ms, a (prod): 4 200ms, a: 3 200ms"},
		{[]File{base, file("y/application-prod.yml", "9")}, "a (2): 9 500ms, a (prod): 4 200ms, a: 3 200ms"},
		{[]File{file("application-prod.yml", "9")}, "a: 9 500ms"},
		{[]File{file("shop.yml", "3"), file("shop-prod.yml", "9"), {"application-prod.yml", []byte("spring.application.name: x\n")}}, "a (prod): 9 500ms, a: 3 500ms"},
		{[]File{{"shop.yml", append(base.Data, "---\nspring.config.activate.on-profile: '!test'\nx: y\n"...)}, file("shop-prod.yml", "9")}, "a (prod): 9 200ms, a: 3 200ms"},
		{[]File{file("product.yml", "3"), file("product-composite.yml", "9")}, "a (2): 9 500ms, a: 3 500ms"},
		{[]File{file("shop.yml", "3"), file("shop2-prod.yml", "9")}, "a (2): 9 500ms, a: 3 500ms"},
		{[]File{{"application.yml", []byte("spring.application.name: shop\n")}, file("application-prod.yml", "9")}, "a: 9 500ms"},
	} {
		got, report := attempts4j(t, c.files...)
		if got != c.want {
			t.Errorf("%s, want %s\n%s", got, c.want, report)
		}
	}
	// What comes from another file has its place there.
	set, _, err := Read([]File{base, file("x/application-prod.yml", "9")}, Options{})
	if err != nil || !slices.Contains(set.Files("a (prod)"), "x/application-prod.yml") {
		t.Errorf("%v %v", err, set.Files("a (prod)"))
	}
	_, _, err = Read([]File{base, file("x/application-prod.yml", "many")}, Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "x/application-prod.yml:1:") {
		t.Errorf("%v", err)
	}
}

// Placeholders have the values of properties, or else their own.
func TestPlaceholdersOfSpring(t *testing.T) {
	for value, want := range map[string]string{
		"${RETRIES:5}":              "5",
		"${app.retries}":            "6",
		"${app.retries:5}":          "6",
		"${RETRIES:${OTHERS:7}}":    "7",
		"${RETRIES:${app.retries}}": "6",
		"${app.again}":              "6",
		"${RETRIES}":                "",
		"${RETRIES:}":               "",
		"${app.loop}":               "",
		"x${RETRIES:5}":             "",
	} {
		text := "app: {retries: 6, again: '${app.retries}', loop: '${app.loop}'}\nresilience4j.retry.instances.a: {maxAttempts: '" + value + "', waitDuration: '${WAIT:1s}', enableExponentialBackoff: '${GROWS:true}'}\n"
		set, report, err := Read([]File{{"application.yml", []byte(text)}}, Options{})
		if (err == nil) != (want != "") {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if err != nil {
			continue
		}
		d, _ := set.File.Dependency("a")
		if fmt.Sprint(d.Policy.Attempts) != want || d.Policy.Backoff.Base != time.Second || d.Policy.Backoff.Factor != 1.5 {
			t.Errorf("%s: %+v", value, d.Policy)
		}
		noted(t, report, Assumed, `["resilience4j.retry.instances.a"].maxAttempts`, "the environment may set")
	}
}

// The default configs are those of each instance, and of those that only the code makes.
func TestDefaultConfigsOfResilience4j(t *testing.T) {
	const both = "resilience4j.retry: {configs: {default: {maxAttempts: 10, waitDuration: 50ms}}}\nresilience4j.circuitbreaker: {configs: {default: {failureRateThreshold: 30}}%s}\n"
	for more, want := range map[string]string{
		"":                     "default",
		", instances: {a: {}}": "a default",
		", instances: {a: {baseConfig: x}}, configs: {x: {}}": "",
		", instances: {default: {}}":                          "default",
	} {
		set, report, err := Read([]File{{"application.yml", []byte(fmt.Sprintf(both, more))}}, Options{})
		if want == "" {
			if err == nil {
				t.Errorf("%s: configs are given twice", more)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, d := range set.File.Dependencies {
			got[d.Name] = true
			if d.Name == "default" && (d.Policy.Attempts != 10 || d.Policy.Backoff.Base != 50*time.Millisecond) {
				t.Errorf("%s: %+v", more, d.Policy)
			}
			if d.Name != "default" || more == "" {
				if d.Policy.Breaker.FailureRate != 0.3 {
					t.Errorf("%s: %s: %+v", more, d.Name, d.Policy.Breaker)
				}
			}
		}
		if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != want {
			t.Errorf("%s: %s, want %s\n%s", more, names, want, report)
		}
	}
}

func FuzzSpring(f *testing.F) {
	f.Add([]byte("resilience4j.retry: {instances: {a: {maxAttempts: '${N:3}'}}}\n---\nspring.config.activate.on-profile: '!(a & b) | c'\nresilience4j.retry.instances.a.maxAttempts: 9\n"), "application-x.yml")
	f.Add([]byte("spring: {profiles: [a, b]}\nresilience4j: {retry: {configs: {default: }}}\n---\nresilience4j.retry.configs.default: {waitDuration: 1}\n"), "application.yml")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		from := Resilience4j
		files := []File{{"application.yml", data}, {name, []byte("resilience4j.retry.instances: {a: {maxAttempts: 2}}\n")}}
		first, report, err := Read(files, Options{From: &from})
		second, again, wrong := Read(files, Options{From: &from})
		if fmt.Sprint(err) != fmt.Sprint(wrong) || report.String() != again.String() {
			t.Fatalf("%v, then %v\n%s\n%s", err, wrong, report, again)
		}
		if err == nil && !slices.EqualFunc(first.File.Dependencies, second.File.Dependencies, func(a, b config.Dependency) bool { return a.Name == b.Name && a.Policy == b.Policy }) {
			t.Errorf("%v, then %v", first.File.Dependencies, second.File.Dependencies)
		}
	})
}
