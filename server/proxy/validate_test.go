package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	problems "github.com/lullgo/lull/internal/problem"
)

// good is a Config with every door.
func good() Config {
	return Config{
		Upstreams: map[string]Upstream{
			"payments": {Listen: "127.0.0.1:9001", To: []string{"https://a.example", "https://b.example:8443"}, CA: "ca.pem", Routes: []Route{
				{Match: "POST /charges/{id}", Policy: "charges", Repeat: Yes}, {Match: "/v1/", Repeat: Once},
			}},
			"app": {Listen: "unix:/run/app.sock", To: []string{"unix:/run/other.sock"}},
			"one": {Listen: "[::1]:0", To: []string{"h2c://orders:50051/v1"}},
			"two": {Listen: "localhost:0", To: []string{"http://[::1]:80"}},
		},
		Forward: Forward{Listen: "127.0.0.1:9000", Hosts: []string{"api.example.com", "*.openai.com", "10.0.0.7:8080", "[::1]:80", "*"}, Routes: []Route{{Match: "POST api.example.com/v1/", Policy: "x"}}},
		Ingress: Ingress{Listen: "0.0.0.0:8080", To: "http://127.0.0.1:3000", Trust: MutualTLS, MaxTimeout: time.Second, Admission: Admission{Max: 200},
			Keys: Keys{Store: "redis://127.0.0.1:6379/0", Scope: "X-User", Required: true}, Cert: "c", Key: "k", ClientCA: "ca"},
		Limits: Limits{HeaderBytes: 64_000, BodyBytes: 10_000_000, Connections: 10_000, HeaderTime: time.Second},
	}
}

func TestGoodConfigs(t *testing.T) {
	if err := good().Validate(); err != nil {
		t.Error(err)
	}
}

// Each change makes one mistake, which is reported at its field.
func TestBadConfigs(t *testing.T) {
	payments := func(change func(*Upstream)) func(*Config) {
		return func(c *Config) { u := c.Upstreams["payments"]; change(&u); c.Upstreams["payments"] = u }
	}
	routes := func(all ...Route) func(*Config) { return payments(func(u *Upstream) { u.Routes = all }) }
	to := func(all ...string) func(*Config) {
		return payments(func(u *Upstream) { u.To, u.CA = all, "" })
	}
	listen := func(address string) func(*Config) { return payments(func(u *Upstream) { u.Listen = address }) }
	type changes map[string][]func(*Config)
	const p = `Upstreams["payments"].`
	for field, all := range (changes{
		"Upstreams":            {func(c *Config) { *c = Config{} }},
		`Upstreams["forward"]`: {func(c *Config) { c.Upstreams["forward"] = Upstream{Listen: "127.0.0.1:1", To: []string{"http://a"}} }},
		p + "Listen": {
			listen(""), listen(":9001"), listen("9001"), listen("*:9001"), listen("1270.0.0.1:9001"), listen("127.0.0:9001"), listen("*.a:9001"), listen("127.0.0.1:http"), listen("127.0.0.1:65536"), listen("unix:run.sock"),
			listen("unix:/" + strings.Repeat("a", 107)),
			listen("unix:/run/app.sock"), // of another door
		},
		p + "To": {to()},
		p + "To[0]": {
			to("payments.example"), to("ftp://a"), to("https://"), to("https://u:p@a"), to("https://a?b=c"), to("https://a#"), to("https://a:"), to("https://a:0"), to("https://a:99999"),
			to("http://127.0.0.1:9001"), to("http://localhost:9001/x"), to("unix:x"), // the first two are the door itself
		},
		p + "To[1]":            {to("https://a", "http://b"), to("https://a", "https://a"), to("https://a/v1", "https://b/v2")},
		p + "CA":               {payments(func(u *Upstream) { u.To = []string{"http://a"} })},
		p + "Replay":           {payments(func(u *Upstream) { u.Replay = -1 })},
		p + "Stale":            {payments(func(u *Upstream) { u.Stale = -1 })},
		p + "Routes[0].Match":  {routes(Route{Match: "charges", Repeat: Yes}), routes(Route{Match: "/{", Repeat: Yes}), routes(Route{Repeat: Yes}), routes(Route{Match: "a.example/", Repeat: Yes}), routes(Route{Match: "/a"})},
		p + "Routes[1].Match":  {routes(Route{Match: "/a", Repeat: Yes}, Route{Match: "/a", Repeat: No}), routes(Route{Match: "/a/{x}", Repeat: Yes}, Route{Match: "/{x}/a", Repeat: No})},
		p + "Routes[0].Repeat": {routes(Route{Match: "/a", Repeat: Once + 1})},
		"Forward.Listen":       {func(c *Config) { c.Forward.Listen = "" }, listen("localhost:9000")},
		"Forward.Hosts":        {func(c *Config) { c.Forward.Hosts = nil }},
		"Forward.Hosts[4]":     {func(c *Config) { c.Forward.Listen = "0.0.0.0:9000" }},
		"Forward.Hosts[0]": {
			func(c *Config) { c.Forward.Hosts[0] = "" }, func(c *Config) { c.Forward.Hosts[0] = "a b" }, func(c *Config) { c.Forward.Hosts[0] = "https://a" },
			func(c *Config) { c.Forward.Hosts[0] = "a.*.b" }, func(c *Config) { c.Forward.Hosts[0] = "a:0" }, func(c *Config) { c.Forward.Hosts[0] = "10.0.0.256" },
		},
		"Forward.Routes[0].Match": {func(c *Config) { c.Forward.Routes[0].Match = "/v1/" }},
		"Ingress.To":              {func(c *Config) { c.Ingress.To = "" }, func(c *Config) { c.Ingress.To = "127.0.0.1:3000" }},
		"Ingress.MaxTimeout":      {func(c *Config) { c.Ingress.MaxTimeout = -1 }},
		"Ingress.Admission.Max":   {func(c *Config) { c.Ingress.Admission.Max = -1 }, func(c *Config) { c.Ingress.Admission.Off = true }},
		"Ingress.Keys.Scope":      {func(c *Config) { c.Ingress.Keys.Scope = "X User" }},
		"Ingress.Keys.Required":   {func(c *Config) { c.Ingress.Keys = Keys{Required: true} }},
		"Ingress.Trust":           {func(c *Config) { c.Ingress.Trust = 9; c.Ingress.ClientCA = "" }},
		"Ingress.ClientCA":        {func(c *Config) { c.Ingress.Trust = Nobody }},
		"Limits.HeaderBytes":      {func(c *Config) { c.Limits.HeaderBytes = -1 }},
		"Limits.BodyBytes":        {func(c *Config) { c.Limits.BodyBytes = -1 }},
		"Limits.Connections":      {func(c *Config) { c.Limits.Connections = 1_000_001 }},
		"Limits.HeaderTime":       {func(c *Config) { c.Limits.HeaderTime = 10 }, func(c *Config) { c.Limits.HeaderTime = -1 }},
		"Limits.IdleTime":         {func(c *Config) { c.Limits.IdleTime = -1 }},
		"Limits.BodyIdle":         {func(c *Config) { c.Limits.BodyIdle = -1 }},
	}) {
		for i, change := range all {
			c := good()
			change(&c)
			if got := problems.Fields(c.Validate()); !slices.Equal(got, []string{field}) {
				t.Errorf("%s, %d: problems of %q: %v", field, i, got, c.Validate())
			}
		}
	}
}

func TestCertWithoutKey(t *testing.T) {
	c := good()
	c.Ingress.Key = ""
	if got := problems.Fields(c.Validate()); !slices.Equal(got, []string{"Ingress.Cert"}) {
		t.Errorf("problems of %q", got)
	}
}

func TestNamesOfRepeatAndTrust(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"by-method": ByMethod, "yes": Yes, "no": No, "once": Once, "repeat(4)": Once + 1,
		"nobody": Nobody, "everybody": Everybody, "mutual-tls": MutualTLS, "trust(3)": MutualTLS + 1,
	} {
		if got := v.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Patterns that match nothing, and doors at one port of all addresses and of one, are mistakes. An exception from a wider pattern is none.
func TestPatternsAndPorts(t *testing.T) {
	with := func(routes ...Route) Config {
		return Config{Upstreams: map[string]Upstream{"a": {Listen: "127.0.0.1:9001", To: []string{"http://b"}, Routes: routes}}}
	}
	two := with()
	two.Upstreams["b"] = Upstream{Listen: "0.0.0.0:9001", To: []string{"http://b"}}
	for name, tt := range map[string]struct {
		config Config
		ok     bool
	}{
		"a method in small letters": {with(Route{Match: "post /x", Repeat: Yes}), false},
		"a query":                   {with(Route{Match: "GET /x?y=1", Repeat: Yes}), false},
		"no effect":                 {with(Route{Match: "/x"}), false},
		"an exception":              {with(Route{Match: "/", Repeat: Yes}, Route{Match: "/x"}), true},
		"all addresses":             {two, false},
	} {
		if err := tt.config.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
