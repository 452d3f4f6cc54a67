package lullnats

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/queue"
)

var good = Config{Stream: "ORDERS", Consumer: "billing", Subject: "orders.>"}

func TestConfigValidate(t *testing.T) {
	with := func(f func(c *Config)) Config { c := good; f(&c); return c }
	for _, x := range []struct {
		c      Config
		fields string // of the expected problems
	}{
		{good, ""},
		{Config{}, "Stream Consumer Subject"},
		{Config{Stream: "a.b", Consumer: "c d", Subject: "a..b"}, "Stream Consumer Subject"},
		{Config{Stream: strings.Repeat("x", 101), Consumer: "ü", Subject: "$JS.API.>"}, "Stream Consumer Subject"},
		{with(func(c *Config) { c.Subject = ">" }), "DeadLetterSubject"},
		{with(func(c *Config) { c.Subject = "a.>.b" }), "Subject"},
		{with(func(c *Config) { c.Subject = "a.*.b" }), ""},
		{with(func(c *Config) { c.Subject = "a b" }), "Subject"},
		{with(func(c *Config) { c.Lease = 99 * time.Millisecond }), "Lease"},
		{with(func(c *Config) { c.Lease = 13 * time.Hour }), "Lease"},
		{with(func(c *Config) { c.Lease = -1 }), "Lease"},
		{with(func(c *Config) { c.Policy.Attempts = -1 }), "Policy.Attempts"},
		{with(func(c *Config) { c.DeliveryLimit = 11 }), "DeliveryLimit"},
		{with(func(c *Config) { c.DeliveryLimit = 12 }), ""},
		{with(func(c *Config) { c.DeliveryLimit = -1 }), ""},
		{with(func(c *Config) { c.Policy.Attempts, c.DeliveryLimit = 1, 3 }), ""},
		{with(func(c *Config) { c.Order = queue.PerGroup }), "Order"},
		{with(func(c *Config) { c.Order, c.Outstanding = queue.Total, 2 }), "Outstanding"},
		{with(func(c *Config) { c.Order, c.Outstanding, c.Concurrency = queue.Total, 1, 16 }), ""},
		{with(func(c *Config) { c.Order, c.Schedules = queue.Total, true }), "Schedules"},
		{with(func(c *Config) { c.Concurrency = 1001 }), "Concurrency"},
		{with(func(c *Config) { c.Concurrency, c.Outstanding = 1001, -1 }), ""},
		{with(func(c *Config) { c.Concurrency = -1 }), "Concurrency"},
		{with(func(c *Config) { c.DeadLetters = "ORDERS" }), "DeadLetters"},
		{with(func(c *Config) { c.AdvisoryStream = "ORDERS_DEAD" }), "AdvisoryStream"},
		{with(func(c *Config) { c.DeadLetters, c.AdvisoryStream = "a b", "c.d" }), "DeadLetters AdvisoryStream"},
		{with(func(c *Config) { c.DeadLetterSubject = "orders.dead" }), "DeadLetterSubject"},
		{with(func(c *Config) { c.DeadLetterSubject = "dead.>" }), "DeadLetterSubject"},
		{with(func(c *Config) { c.LaterSubject = "later.*" }), "LaterSubject"},
		{with(func(c *Config) { c.Schedules, c.LaterSubject = true, "orders" }), "LaterSubject"},
		{with(func(c *Config) { c.Duplicates = time.Millisecond }), "Duplicates"},
		{with(func(c *Config) { c.MaxAge = time.Minute }), "MaxAge"},
		{with(func(c *Config) { c.MaxAge = -1 }), "MaxAge"},
		{with(func(c *Config) { c.Replicas = 6 }), "Replicas"},
	} {
		err := x.c.Validate()
		if got := strings.Join(problem.Fields(err), " "); got != x.fields {
			t.Errorf("%+v: %q, want %q (%v)", x.c, got, x.fields, err)
		}
	}
	err := Config{Stream: "x y", Consumer: "c", Subject: "s", Lease: 1}.Validate()
	want := `Stream is "x y": want 1 to 100 letters, digits, hyphens and underscores` + "\n" +
		"Lease is 1ns: want a duration from 100ms to 12h, or 0 for the default of 30s"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestConfigDefaults(t *testing.T) {
	got := good.WithDefaults()
	want := Config{
		Stream: "ORDERS", Consumer: "billing", Subject: "orders.>", Source: "ORDERS",
		Policy: queue.Policy(), DeliveryLimit: 15, Outstanding: 1000, Duplicates: 2 * time.Minute,
		LaterSubject: "later.ORDERS.billing", DeadLetters: "ORDERS_DEAD", DeadLetterSubject: "dead.ORDERS.billing", AdvisoryStream: "ORDERS_billing_ADVISORIES",
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	check.Equal(t, got.WithDefaults(), got, "and again")
	if n := (Config{DeliveryLimit: -7, Outstanding: -7}).WithDefaults(); n.DeliveryLimit != -1 || n.Outstanding != -1 || n.reaps() {
		t.Errorf("no limits: %+v", n)
	}
	check.Equal(t, (Config{Order: queue.Total}).WithDefaults().Outstanding, 1, "outstanding of a total order")
	check.Equal(t, good.ackWait(), 31*time.Second, "AckWait")
}

func TestCovers(t *testing.T) {
	for _, x := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", "a.b", false}, {"a.b", "a", false},
		{"a.*", "a.b", true}, {"a.*", "a.*", true}, {"a.b", "a.*", false}, {"a.*", "a.b.c", false},
		{">", "a", true}, {">", "a.b.>", true}, {"a.>", "a", false}, {"a.>", "a.b", true}, {"a.>", "a.>", true}, {"a.*", "a.>", false}, {"a.>", ">", false},
		{"*.*", "a.b", true}, {"*", ">", false}, {"", "", true}, {"", "a", false},
	} {
		check.Equal(t, matchesAll(x.a, x.b), x.want, "covers(%q, %q)", x.a, x.b)
	}
}

// matchesAll agrees, for a subject without wildcards, with matching it token by token.
func FuzzMatchesAll(f *testing.F) {
	f.Add("a.*.>", "a.b.c")
	f.Add(">", "a")
	f.Fuzz(func(t *testing.T, filter, subject string) {
		if !validFilter.MatchString(filter) || !validSubject.MatchString(subject) {
			matchesAll(filter, subject)
			return
		}
		var match func(f, s []string) bool
		match = func(f, s []string) bool {
			switch {
			case len(f) == 1 && f[0] == ">":
				return len(s) > 0
			case len(f) == 0 || len(s) == 0:
				return len(f) == len(s)
			}
			return (f[0] == "*" || f[0] == s[0]) && match(f[1:], s[1:])
		}
		if got, want := matchesAll(filter, subject), match(strings.Split(filter, "."), strings.Split(subject, ".")); got != want {
			t.Errorf("covers(%q, %q) = %v", filter, subject, got)
		}
		if !matchesAll(filter, filter) {
			t.Errorf("%q does not cover itself", filter)
		}
	})
}

// No config makes Validate or later calls panic. A valid config is valid with its defaults.
func FuzzConfig(f *testing.F) {
	f.Add("S", "c", "a.>", "", "", int64(0), 0, 0, 0, uint8(0), false)
	f.Fuzz(func(t *testing.T, stream, consumer, subject, dead, later string, lease int64, attempts, deliver, outstanding int, order uint8, schedules bool) {
		c := Config{
			Stream: stream, Consumer: consumer, Subject: subject, DeadLetterSubject: dead, LaterSubject: later, Lease: time.Duration(lease),
			Policy: lull.Policy{Attempts: attempts}, DeliveryLimit: deliver, Outstanding: outstanding, Order: queue.Order(order), Schedules: schedules,
		}
		d := c.WithDefaults()
		var none queueState
		none.problems(d)
		if c.Validate() != nil {
			return
		}
		check.Is(t, d.Validate(), nil, "with defaults")
		if d.DeliveryLimit > 0 && d.DeliveryLimit < d.attempts()+2 {
			t.Errorf("DeliveryLimit %d for %d attempts", d.DeliveryLimit, d.attempts())
		}
		if !slices.Contains([]queue.Order{queue.Unordered, queue.Total}, c.Order) {
			t.Errorf("order %v", c.Order)
		}
	})
}
