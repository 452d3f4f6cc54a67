package file

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/codec/codectest"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

func TestAWholeFile(t *testing.T) {
	data := must.Have(os.ReadFile("testdata/whole.yaml"))
	f, err := Parse("whole.yaml", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := f.Config()
	if got := c.Policy("payments").Attempts; got != 3 {
		t.Errorf("payments has %d attempts, want 3", got)
	}
	if got := c.Policy("api.example.com").Deadline; got != 5*time.Second {
		t.Errorf("a host has a deadline of %v, want that of the defaults", got)
	}
	route := proxy.Route{Match: "POST /charges/{id}", Policy: "charges", Repeat: proxy.Yes}
	if u := c.Upstreams["payments"]; !reflect.DeepEqual(u.Routes, []proxy.Route{route}) || c.Limits.HeaderBytes != 64_000 || c.Limits.BodyBytes != 10_000_000 {
		t.Errorf("got %+v", c)
	}
	if !reflect.DeepEqual(c.Private, []string{"127.0.0.1:9900"}) || f.Traces.Share != 0.01 {
		t.Errorf("private addresses %q, share %v", c.Private, f.Traces.Share)
	}
	if at := f.Position("upstreams.payments.routes.0.repeat").String(); at != "whole.yaml:7:64" {
		t.Errorf("repeat is at %s", at)
	}
}

// All mistakes are reported at once, with their lines. What may be a consequence of another mistake is left out.
func TestMistakes(t *testing.T) {
	for _, name := range []string{"mistakes", "rules"} {
		path := "testdata/" + name + ".yaml"
		_, err := Parse(path, must.Have(os.ReadFile(path)), nil)
		if err == nil {
			t.Fatalf("%s: no mistake", path)
		}
		golden.File(t, "testdata/"+name+".txt", codectest.Slashed(err))
	}
}

func TestAdminIsForThisMachineOnly(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:9900": true, "localhost:9900": true, "[::1]:9900": true, "127.9.9.9:1": true, "unix:/run/a.sock": true,
		"0.0.0.0:9900": false, ":9900": false, "10.0.0.1:9900": false, "[::]:9900": false, "host:9900": false, "unix:a": false, "9900": false,
		"127.0.0.1:9001": false, "localhost:9001": false, // the door's
	} {
		_, err := Parse("f", []byte("upstreams: {a: {listen: 127.0.0.1:9001, to: [http://b]}}\nadmin: {listen: '"+address+"'}"), nil)
		if (err == nil) != ok || err != nil && !strings.HasPrefix(err.Error(), "f:2:17: admin.listen is ") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestPoliciesOfAProxysFile(t *testing.T) {
	f, err := ParsePolicies("f", must.Have(os.ReadFile("testdata/whole.yaml")))
	if err != nil || len(f.Dependencies) != 2 {
		t.Errorf("got %+v, %v", f, err)
	}
	if f, err := ParsePolicies("f", []byte("upstreams: {a: {listen: 127.0.0.1:9001, to: [http://b]}}")); err != nil || len(f.Dependencies) != 0 {
		t.Errorf("doors alone: %+v, %v", f, err)
	}
	// Any other file is a policy file: its sections are not offered.
	if _, err := ParsePolicies("f", []byte("dependencies: {a: }\nadmin: {}")); err == nil || strings.Contains(err.Error(), "upstreams") {
		t.Errorf("got %v", err)
	}
}

func TestUnusedPolicies(t *testing.T) {
	const doors = "upstreams: {a: {listen: 127.0.0.1:9001, to: [http://b], routes: [{match: /, policy: b}]}, c: {listen: 127.0.0.1:9002, to: [http://b], policy: d}}\n"
	f := must.Have(Parse("f", []byte(doors+"dependencies: {a: , b: , c: , d: }"), nil))
	if got := f.Unused(); !reflect.DeepEqual(got, []string{"c"}) {
		t.Errorf("got %q", got)
	}
	f = must.Have(Parse("f", []byte(doors+"forward: {listen: 127.0.0.1:1, hosts: [c]}\ndependencies: {b: , c: , d: }"), nil))
	if got := f.Unused(); got != nil {
		t.Errorf("with a forward door: %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"whole", "mistakes", "rules"} {
		f.Add(must.Have(os.ReadFile("testdata/" + name + ".yaml")))
	}
	f.Add([]byte("upstreams: {a: &a {listen: 127.0.0.1:9001, to: [http://b]}, c: {<<: *a, listen: 127.0.0.1:9002}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Parse("f", data, nil)
		if err != nil {
			codectest.Located(t, err)
			return
		}
		if err := got.Config().Validate(); err != nil {
			t.Error(err)
		}
		if _, err := ParsePolicies("f", data); err != nil {
			t.Errorf("its policies: %v", err)
		}
		got.Unused()
	})
}
