package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/throttle"
)

func page(t *testing.T) string {
	t.Helper()
	return string(must.Have(os.ReadFile("../../../docs/convert.md")))
}

// table is the rows of the first table below a heading, without its own head.
func table(t *testing.T, heading string) [][]string {
	t.Helper()
	_, after, ok := strings.Cut(page(t), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/convert.md has no %q", heading)
	}
	var rows [][]string
	for line := range strings.Lines(after) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(line, "|"), " | ") {
			cells = append(cells, strings.TrimSpace(c))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("no table below %q", heading)
	}
	return rows[2:]
}

// probes are policies with one field more than every format can express, and the name of that
// field.
var probes = []struct {
	row, field string
	edit       func(p *lull.Policy)
}{
	{"`attempts` up to 5", "attempts", func(p *lull.Policy) { p.Attempts = 5 }},
	{"`attempts` from 6", "attempts", func(p *lull.Policy) { p.Attempts = 6 }},
	{"`attempt_timeout`", "attempt_timeout", func(p *lull.Policy) { p.AttemptTimeout = time.Second }},
	{"`deadline`", "deadline", func(p *lull.Policy) { p.Deadline = 7 * time.Second }},
	{"`backoff`, exponential with full jitter, factor 2, cap 10 × base", "backoff", func(p *lull.Policy) { p.Backoff = backoff.Schedule{Base: time.Second, Cap: 10 * time.Second} }},
	{"`backoff`, the same with another cap", "backoff", func(p *lull.Policy) { p.Backoff = backoff.Schedule{Base: time.Second, Cap: 2 * time.Second} }},
	{"`backoff`, exponential with proportional jitter, any factor and cap", "backoff", func(p *lull.Policy) {
		p.Backoff = backoff.Schedule{Jitter: backoff.Proportional, Base: time.Second, Factor: 1.5, Cap: 3 * time.Second}
	}},
	{"`backoff`, other kinds and jitters", "backoff", func(p *lull.Policy) { p.Backoff = backoff.Schedule{Kind: backoff.Linear, Jitter: backoff.Equal} }},
	{"`backoff.floor`", "backoff", func(p *lull.Policy) {
		p.Backoff = backoff.Schedule{Base: 25 * time.Millisecond, Cap: 250 * time.Millisecond, Floor: 10 * time.Millisecond}
	}},
	{"`backoff.fast_first`", "backoff", func(p *lull.Policy) { p.Backoff.FastFirst = true }},
	{"`rate_limited_base` up to `backoff.base`", "rate_limited_base", func(p *lull.Policy) { p.RateLimitedBase = 1 }},
	{"`rate_limited_base` above it", "rate_limited_base", func(p *lull.Policy) { p.RateLimitedBase = time.Hour }},
	{"`timeouts: always`", "timeouts", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsAlways }},
	{"`timeouts: never`", "timeouts", func(p *lull.Policy) { p.Timeouts = lull.TimeoutsNever }},
	{"`timeouts: when-answered`", "timeouts", func(p *lull.Policy) { p.Timeouts = engine.TimeoutsWhenAnswered }},
	{"`nested: always`", "nested", func(p *lull.Policy) { p.Nested = lull.NestedAlways }},
	{"`nested: never`", "nested", func(p *lull.Policy) { p.Nested = engine.NestedNever }},
	{"`hint_limit`", "hint_limit", func(p *lull.Policy) { p.HintLimit = 20 * time.Second }},
	{"`budget.unlimited`", "budget", func(p *lull.Policy) { p.Budget = budget.Config{Unlimited: true} }},
	{"`budget`, any other", "budget", func(p *lull.Policy) { p.Budget = budget.Config{Ratio: 0.2} }},
	{"`breaker.off`", "breaker", func(p *lull.Policy) { p.Breaker = breaker.Config{Off: true} }},
	{"`breaker` that opens after failures in a row, at once (`consecutive_for` below 0)", "breaker", func(p *lull.Policy) {
		p.Breaker = breaker.Config{Consecutive: 5, ConsecutiveFor: -1, OpenFor: time.Minute, OpenMax: 5 * time.Minute, OpenJitter: -1}
	}},
	{"`breaker` that opens at a share of failures", "breaker", func(p *lull.Policy) {
		p.Breaker = breaker.Config{Consecutive: -1, FailureRate: 0.5, OpenFor: time.Minute}
	}},
	{"`breaker` of any other kind, the recommended one among them", "breaker", func(p *lull.Policy) { p.Breaker = breaker.Config{} }},
	{"`hedge` after a fixed delay, without `share` and `in_flight`", "hedge", func(p *lull.Policy) {
		p.Attempts, p.Hedge = 1, hedge.Config{Attempts: 2, Delay: time.Second, Share: -1, InFlight: -1}
	}},
	{"`hedge` with a delay that is learned", "hedge", func(p *lull.Policy) { p.Attempts, p.Hedge = 1, hedge.Config{Attempts: 2} }},
	{"`throttle`", "throttle", func(p *lull.Policy) { p.Throttle = throttle.Config{Mode: throttle.Adaptive} }},
	{"`limit.in_flight`", "limit", func(p *lull.Policy) { p.Limit = bulkhead.Config{InFlight: 9} }},
	{"`limit.max_wait`, `limit.max_queue`", "limit.max_wait", func(p *lull.Policy) { p.Limit = bulkhead.Config{InFlight: 9, MaxWait: time.Second, MaxQueue: 3} }},
}

// became is the result for a field of a policy in a format: "same", "changed" or "lost".
func became(t *testing.T, to Format, field string, p lull.Policy) string {
	t.Helper()
	out := convert(t, file(t, p), to, Options{})
	kind := ""
	for _, e := range out.Report {
		path := strings.TrimPrefix(e.Path, "dependencies.api.")
		if e.Kind.Loss() && (path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(field, path+".")) {
			if kind != "" && e.Kind == Changed {
				continue
			}
			kind = e.Kind.String()
		}
	}
	if kind != "" {
		return kind
	}
	back := policies(t, convert(t, File{"out", out.Data}, Lull, Options{}).Data)[0].Policy
	top, _, _ := strings.Cut(field, ".")
	if slices.Contains(differing(p, back), top) {
		return "different, and not reported"
	}
	return "same"
}

// The page describes what the converters do with each field.
func TestThePageShowsWhatPoliciesBecome(t *testing.T) {
	rows := table(t, "## What a policy becomes")
	check.Equal(t, len(rows), len(probes), "rows")
	columns := []Format{GRPC, Istio, Envoy, Gateway, EnvoyGateway, Dapr}
	var want strings.Builder
	for _, probe := range probes {
		fmt.Fprintf(&want, "| %s", probe.row)
		i := slices.IndexFunc(rows, func(r []string) bool { return r[0] == probe.row })
		for c, to := range columns {
			// A policy that the format can hold, except for the field.
			p := base{}.of(to).policy
			p.Attempts = 4
			probe.edit(&p)
			if err := p.Validate(); err != nil {
				t.Fatalf("%s: %v", probe.row, err)
			}
			got := became(t, to, probe.field, p)
			fmt.Fprintf(&want, " | %s", got)
			if i < 0 || len(rows[i]) != len(columns)+1 {
				continue
			}
			if said, _, _ := strings.Cut(rows[i][c+1], ":"); said != got {
				t.Errorf("%s in %v: %s, the page says %q", probe.row, to, got, rows[i][c+1])
			}
		}
		if i < 0 {
			t.Errorf("no row for %s", probe.row)
		}
		want.WriteString(" |\n")
	}
	if t.Failed() {
		t.Logf("the table:\n%s", want.String())
	}
}

// Every field of the policies is in the table.
func TestThePageHasEveryField(t *testing.T) {
	text := page(t)
	for _, field := range []string{"attempts", "attempt_timeout", "deadline", "backoff", "rate_limited_base", "timeouts", "nested", "hint_limit", "budget", "breaker", "hedge", "throttle", "limit"} {
		if !strings.Contains(text, "`"+field) {
			t.Errorf("the page does not mention %s", field)
		}
	}
	var known []string
	known = append(known, retryFields...)
	known = append(known, thresholdFields...)
	known = append(known, outlierFields...)
	known = append(known, istioOutlierFields...)
	known = append(known, "retryPolicy", "hedgingPolicy", "retryThrottling", "perTryTimeout", "retryOn", "retryIgnorePreviousHosts", "retryRemoteLocalities",
		"http2MaxRequests", "maxRetries", "retryBudget", "hedge_on_per_try_timeout", "retryConstraint", "minRetryRate", "backendRequest", "waitForReady", "perAttemptRecvTimeout",
		"connectionPool", "subsets", "portLevelSettings", "retry_budget")
	for _, field := range known {
		if !regexp.MustCompile("`[^`]*\\b" + field + "\\b[^`]*`").MatchString(text) {
			t.Errorf("the page does not mention %s", field)
		}
	}
	for _, f := range Formats() {
		if !strings.Contains(text, "`"+f.String()+"`") {
			t.Errorf("the page does not mention the format %v", f)
		}
	}
}

// Realistic files, their conversions, and the reports.
func TestGoldenFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		to   Format
	}{
		{"istio.yaml", Lull}, {"envoy.yaml", Lull}, {"grpc.json", Lull}, {"gateway.yaml", Lull},
		{"lull.yaml", GRPC}, {"lull.yaml", Istio}, {"lull.yaml", Envoy}, {"lull.yaml", Gateway},
		{"envoy-gateway.yaml", Lull}, {"lull.yaml", EnvoyGateway}, {"envoy-gateway.yaml", Envoy}, {"envoy-gateway.yaml", Istio}, {"envoy.yaml", EnvoyGateway}, {"istio.yaml", EnvoyGateway},
		{"linkerd.yaml", Lull}, {"resilience4j.yaml", Lull}, {"resilience4j.yaml", Istio}, {"dapr.yaml", Lull}, {"lull.yaml", Dapr}, {"dapr.yaml", Istio}, {"envoy.yaml", Dapr}, {"grpc.json", Dapr},
		{"istio.yaml", Envoy}, {"envoy.yaml", Istio}, {"envoy.yaml", Gateway},
	} {
		out, err := Convert(open(t, "golden/"+c.name), c.to, Options{})
		if err != nil {
			t.Errorf("%s to %v: %v", c.name, c.to, err)
			continue
		}
		for _, e := range out.Report {
			if e.Line == 0 || e.Column == 0 || e.File != c.name || e.Path == "" || e.Why == "" {
				t.Errorf("%s to %v: %+v", c.name, c.to, e)
			}
		}
		base := "golden/" + strings.TrimSuffix(c.name, filepath.Ext(c.name)) + "-to-" + c.to.String()
		golden.File(t, "testdata/"+base+".out", string(out.Data))
		golden.File(t, "testdata/"+base+".report", out.Report.String())
		// The format of the result is recognised.
		again, err := Convert([]File{{"again", out.Data}}, Lull, Options{})
		if err != nil {
			t.Errorf("%s to %v cannot be read: %v", c.name, c.to, err)
		} else if c.to != GRPC && len(policies(t, again.Data)) == 0 {
			t.Errorf("%s to %v: nothing is in it", c.name, c.to)
		}
	}
}
