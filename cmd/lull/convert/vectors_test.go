package convert

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/serviceconfig"
	"github.com/lullgo/lull/internal/tree"
)

func vectors(t *testing.T, name string, into any) {
	t.Helper()
	must.Succeed(json.Unmarshal(must.Have(os.ReadFile("testdata/"+name)), into))
}

// paths of the losses of a report.
func losses(r Report) []string {
	var all []string
	for _, e := range r.Losses() {
		all = append(all, e.Path)
	}
	return all
}

func has(r Report, path string) bool {
	return slices.ContainsFunc(r, func(e Entry) bool { return e.Path == path })
}

// An Envoy retry policy as gRPC reads it (gRFC A44). Where gRPC refuses a resource, a converter
// reports what is wrong or what becomes of it.
func TestPublishedEnvoyToGRPC(t *testing.T) {
	var v struct {
		Cases []struct {
			In struct {
				RetryOn    string `json:"retry_on"`
				NumRetries *int   `json:"num_retries"`
				BackOff    *struct {
					Base string `json:"base_interval"`
					Max  string `json:"max_interval"`
				} `json:"retry_back_off"`
			}
			Want json.RawMessage
		}
	}
	vectors(t, "grpc_xds_retry_policy_conversion.json", &v)
	check.Equal(t, len(v.Cases), 8, "cases")
	seconds := func(s string) string { // protobuf has no ms
		d := must.Have(time.ParseDuration(s))
		return tree.Seconds(d)
	}
	for _, c := range v.Cases {
		policy := map[string]any{"retry_on": c.In.RetryOn}
		if c.In.NumRetries != nil {
			policy["num_retries"] = *c.In.NumRetries
		}
		if b := c.In.BackOff; b != nil {
			waits := map[string]any{}
			if b.Base != "" {
				waits["base_interval"] = seconds(b.Base)
			}
			if b.Max != "" {
				waits["max_interval"] = seconds(b.Max)
			}
			policy["retry_back_off"] = waits
		}
		text, _ := json.Marshal(map[string]any{"cluster": "x", "timeout": "0s", "retry_policy": policy})
		out, err := Convert([]File{{"envoy.json", text}}, GRPC, Options{})
		if string(c.Want) == `"error"` {
			switch {
			case c.In.NumRetries != nil && *c.In.NumRetries == 0:
				// Envoy takes it, so it is no mistake; gRPC has no retryPolicy of one attempt.
				if err != nil || strings.Contains(string(out.Data), "retryPolicy") || !has(out.Report, "retry_policy.retry_on") {
					t.Errorf("%s: %v\n%s%v", text, err, out.Data, out.Report)
				}
			case err == nil:
				t.Errorf("%s: passed", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var want struct {
			Codes      []string
			NumRetries int
			Base, Max  string
		}
		must.Succeed(json.Unmarshal(c.Want, &want))
		got, err := serviceconfig.Parse(out.Data)
		if err != nil || got.Methods[0].Retry == nil {
			t.Errorf("%s: %v\n%s", text, err, out.Data)
			continue
		}
		r := *got.Methods[0].Retry
		var codes []string
		for _, c := range r.RetryableStatusCodes {
			codes = append(codes, c.String())
		}
		base, _ := time.ParseDuration(want.Base)
		longest, _ := time.ParseDuration(want.Max)
		if !slices.Equal(codes, want.Codes) || r.MaxAttempts != want.NumRetries+1 || r.InitialBackoff != base || r.MaxBackoff != longest || r.BackoffMultiplier != 2 {
			t.Errorf("%s becomes %+v (%v), want %+v", text, r, codes, want)
		}
		if strings.Contains(c.In.RetryOn, "unsupported") && !has(out.Report, "retry_policy.retry_on") {
			t.Errorf("%s: the unknown word is not reported: %v", text, out.Report)
		}
	}
}

// istioCase is a VirtualService with these retries, as JSON.
func istioCase(retries json.RawMessage) File {
	route := map[string]any{"route": []any{map[string]any{"destination": map[string]any{"host": "x"}}}}
	if string(retries) != "null" {
		route["retries"] = retries
	}
	text, _ := json.Marshal(map[string]any{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "spec": map[string]any{"http": []any{route}}})
	return File{"vs.json", text}
}

type envoyWant struct {
	RetryOn    *string `json:"retry_on"`
	Codes      []int
	Base       string    `json:"base_interval"`
	PerTry     string    `json:"per_try_timeout"`
	NumRetries int       `json:"num_retries"`
	Predicate  *[]string `json:"retry_host_predicate"`
	Searches   int       `json:"host_selection_retry_max_attempts"`
	Priority   string    `json:"retry_priority"`
	Frequency  int       `json:"update_frequency"`
}

func extensionNames(list *tree.Node) (all []string) {
	if list == nil {
		return nil
	}
	for _, item := range list.Items {
		all = append(all, item.Get("name").Text)
	}
	return all
}

// The converter makes the same of a VirtualService for Envoy as Istio does.
func TestPublishedIstioToEnvoy(t *testing.T) {
	var v struct {
		Default, DefaultInbound envoyWant
		Convert, Inbound        []struct {
			In   json.RawMessage
			Want json.RawMessage
			Hash bool `json:"consistentHash"`
		}
	}
	vectors(t, "istio_http_retry.json", &v)
	if len(v.Convert) < 11 || len(v.Inbound) < 4 {
		t.Fatalf("%d and %d cases", len(v.Convert), len(v.Inbound))
	}
	for _, c := range v.Convert {
		want := envoyWant{}
		switch string(c.Want) {
		case `"default"`:
			want = v.Default
		default:
			must.Succeed(json.Unmarshal(c.Want, &want))
		}
		files := []File{istioCase(c.In)}
		if c.Hash {
			files = append(files, File{"dr.yaml", []byte("apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: x, trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true}}}}")})
		}
		out, err := Convert(files, Envoy, Options{})
		if err != nil {
			// Istio's conversion takes words that its validation refuses (some, fake,
			// conditions), and so does the part of ours that takes them apart.
			var in struct{ RetryOn string }
			if json.Unmarshal(c.In, &in); !strings.Contains(in.RetryOn, "fake") {
				t.Errorf("%s: %v", c.In, err)
				continue
			}
			f := parseIstioRetryOn(in.RetryOn)
			if got := strings.Join(f.on, ","); got != *want.RetryOn || fmt.Sprint(f.statuses) != fmt.Sprint(want.Codes) {
				t.Errorf("%s: %s and %v, want %s and %v", c.In, got, f.statuses, *want.RetryOn, want.Codes)
			}
			continue
		}
		got := envoyRetryOf(t, out.Data)
		if string(c.Want) == "null" {
			if got != nil {
				t.Errorf("%s becomes %s", c.In, got.JSON())
			}
			continue
		}
		checkEnvoy(t, string(c.In), got, want)
		if want.Predicate == nil { // a case that is about something else
			want.Predicate = v.Default.Predicate
		}
		check.Slices(t, extensionNames(got.Get("retry_host_predicate")), *want.Predicate, "%s: predicates", c.In)
		if searches := got.Get("host_selection_retry_max_attempts"); searches == nil || searches.Text != fmt.Sprint(v.Default.Searches) {
			t.Errorf("%s: %v searches, want %d", c.In, searches, v.Default.Searches)
		}
		switch p := got.Get("retry_priority"); {
		case want.Priority == "":
			if p != nil {
				t.Errorf("%s: priorities %s", c.In, p.JSON())
			}
		case p == nil || p.Get("name").Text != want.Priority || p.Get("typed_config").Get("update_frequency").Text != fmt.Sprint(want.Frequency):
			t.Errorf("%s: no %s", c.In, want.Priority)
		}
	}
	for _, c := range v.Inbound { // a sidecar's own: the same but for what is retried by default
		in := &reading{set: newSet()}
		d := in.newDocument(File{Name: "x"}, tree.NewMap(), "")
		i := &istioReader{r: in, d: d}
		nodes := must.Have(tree.ParseJSON(c.In))
		inbound := failures{on: []string{"reset-before-request"}}
		r := &envoyRetry{retries: 2, on: inbound, waits: &backoff.Schedule{}}
		if nodes[0].Kind == tree.Map {
			r = i.retries(d.Object(nodes[0], ""), inbound)
		}
		want := envoyWant{}
		switch string(c.Want) {
		case `"default_inbound"`:
			want = envoyWant{RetryOn: &[]string{"reset-before-request"}[0], NumRetries: 2}
		case "null":
			check.Equal(t, r.retries, int64(0), "inbound %s: %+v", c.In, r)
			continue
		default:
			json.Unmarshal(c.Want, &want)
		}
		base, _ := time.ParseDuration(want.Base)
		if got := strings.Join(r.on.on, ","); got != *want.RetryOn || want.NumRetries > 0 && r.retries != int64(want.NumRetries) || r.waits != nil && r.waits.Base != base || r.waits == nil && base > 0 || want.Codes != nil && !slices.Equal(r.on.statuses, want.Codes) {
			t.Errorf("inbound %s: %+v, want %+v", c.In, r, want)
		}
	}
}

// envoyRetryOf is the retry policy of the one route that was written.
func envoyRetryOf(t *testing.T, data []byte) *tree.Node {
	t.Helper()
	docs := must.Have(parse("", data))
	return docs[0].Get("resources").Items[0].Get("virtual_hosts").Items[0].Get("routes").Items[0].Get("route").Get("retry_policy")
}

// envoyBudgetOf is the retry budget of the one cluster that was written, and its figures.
func envoyBudgetOf(data []byte) (b *tree.Node, percent float64, least int) {
	b = must.Have(parse("", data))[1].Get("resources").Items[0].Get("circuit_breakers").Get("thresholds").Items[0].Get("retry_budget")
	percent, _ = tree.AnyNumber(b.Get("budget_percent").Get("value"))
	n, _ := tree.WholeNumber(b.Get("min_retry_concurrency"))
	return b, percent, int(n)
}

func checkEnvoy(t *testing.T, name string, got *tree.Node, want envoyWant) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: no retry policy", name)
		return
	}
	if want.RetryOn != nil && got.Get("retry_on").Text != *want.RetryOn {
		t.Errorf("%s: retry_on %s, want %s", name, got.Get("retry_on").Text, *want.RetryOn)
	}
	if want.Codes != nil {
		var codes []int
		if list := got.Get("retriable_status_codes"); list != nil {
			for _, item := range list.Items {
				n, _ := tree.WholeNumber(item)
				codes = append(codes, int(n))
			}
		}
		if !slices.Equal(codes, want.Codes) && len(codes)+len(want.Codes) > 0 {
			t.Errorf("%s: codes %v, want %v", name, codes, want.Codes)
		}
	}
	for field, text := range map[string]string{"per_try_timeout": want.PerTry, "base_interval": want.Base} {
		n := got.Get(field)
		if field == "base_interval" {
			n = got.Get("retry_back_off").Get(field)
		}
		if text != "" && (n == nil || n.Text != text) {
			t.Errorf("%s: %s is %v, want %s", name, field, n, text)
		}
	}
	if want.NumRetries > 0 && got.Get("num_retries").Text != fmt.Sprint(want.NumRetries) {
		t.Errorf("%s: num_retries is %s, want %d", name, got.Get("num_retries").Text, want.NumRetries)
	}
}

func TestPublishedIstioValidation(t *testing.T) {
	var v struct {
		Validate []struct {
			In    json.RawMessage
			Valid bool
		}
		Budget []struct {
			In   json.RawMessage
			Want struct {
				Percent float64 `json:"budget_percent"`
				Min     int     `json:"min_retry_concurrency"`
			}
		} `json:"retry_budget"`
	}
	vectors(t, "istio_http_retry.json", &v)
	if len(v.Validate) < 12 || len(v.Budget) < 1 {
		t.Fatalf("%d cases", len(v.Validate))
	}
	for _, c := range v.Validate {
		_, err := Convert([]File{istioCase(c.In)}, Lull, Options{})
		check.Equal(t, err == nil, c.Valid, "%s: valid %v, got %v", c.In, c.Valid, err)
		if err != nil && !strings.Contains(err.Error(), "vs.json:1:") {
			t.Errorf("%s: not located: %v", c.In, err)
		}
	}
	for _, c := range v.Budget {
		text, _ := json.Marshal(map[string]any{"apiVersion": "networking.istio.io/v1", "kind": "DestinationRule", "spec": map[string]any{"host": "x", "trafficPolicy": map[string]any{"retryBudget": c.In}}})
		out := must.Have(Convert([]File{{"dr.json", text}}, Envoy, Options{}))
		b, percent, least := envoyBudgetOf(out.Data)
		if percent != c.Want.Percent || least != c.Want.Min || b.Get("budget_interval") != nil {
			t.Errorf("%s becomes %s", c.In, b.JSON())
		}
	}
}

func TestPublishedRetryOn(t *testing.T) {
	var v struct {
		Cases []struct {
			In    string
			Flags []string
			GRPC  *int `json:"grpc_flags"`
			Valid bool `json:"all_valid"`
		}
	}
	vectors(t, "envoy_retry_on_parse.json", &v)
	check.Equal(t, len(v.Cases), 6, "cases")
	for _, c := range v.Cases {
		known, unknown := parseRetryOn(c.In)
		if c.GRPC != nil && len(known) != *c.GRPC || c.GRPC == nil && !slices.Equal(known, c.Flags) || (len(unknown) == 0) != c.Valid {
			t.Errorf("%q: %q and %q, want %q, valid %v", c.In, known, unknown, c.Flags, c.Valid)
		}
		text, _ := json.Marshal(map[string]any{"retry_on": c.In})
		out := must.Have(Convert([]File{{"r.json", text}}, Lull, Options{}))
		gone := slices.ContainsFunc(out.Report, func(e Entry) bool { return e.Kind == Lost && e.Path == "retry_on" })
		if gone == c.Valid {
			t.Errorf("%q: reported %v, want %v", c.In, gone, !c.Valid)
		}
	}
}

// The waits of a converted policy are drawn from the ranges that Envoy draws from.
func TestPublishedEnvoyWaits(t *testing.T) {
	var v struct {
		Cases []struct {
			Base, Max int
			Random    []int
			Delay     []int `json:"delay_ms"`
		}
	}
	vectors(t, "envoy_backoff.json", &v)
	check.Equal(t, len(v.Cases), 3, "cases")
	for _, c := range v.Cases {
		text := fmt.Sprintf(`{"retry_on": "5xx", "num_retries": 9, "retry_back_off": {"base_interval": "%s", "max_interval": "%s"}}`,
			tree.Seconds(time.Duration(c.Base)*time.Millisecond), tree.Seconds(time.Duration(c.Max)*time.Millisecond))
		out := must.Have(Convert([]File{{"r.json", []byte(text)}}, Lull, Options{}))
		p := policies(t, out.Data)[0].Policy
		for i, r := range c.Random {
			below := int(p.Backoff.Ceiling(i+1) / time.Millisecond)
			check.Equal(t, r%below, c.Delay[i], "base %d, max %d, retry %d: below %d ms, so that %d gives", c.Base, c.Max, i+1, below, r)
			check.Equal(t, p.Backoff.Delay(i+1, 0, func() uint64 { return 0 }), 0, "retry %d: not below", i+1)
		}
	}
}

// A retry budget goes to a policy and back unchanged, and is reported as something else
// there. The published cases have the figures.
func TestPublishedRetryBudgets(t *testing.T) {
	var v struct {
		Cases []struct {
			Pct float64
			Min int
		}
	}
	vectors(t, "envoy_retry_budget.json", &v)
	check.Equal(t, len(v.Cases), 6, "cases")
	for _, c := range v.Cases {
		text := fmt.Sprintf(`{"resources": [
			{"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "virtual_hosts": [{"name": "x", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "x", "retry_policy": {"retry_on": "5xx"}}}]}]},
			{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "x", "circuit_breakers": {"thresholds": [{"retry_budget": {"budget_percent": {"value": %v}, "min_retry_concurrency": %d}}]}}]}`, c.Pct, c.Min)
		out := must.Have(Convert([]File{{"e.json", []byte(text)}}, Lull, Options{}))
		p := policies(t, out.Data)[0].Policy
		const path = "resources[1].circuit_breakers.thresholds[0].retry_budget"
		if !slices.Contains(losses(out.Report), path) {
			t.Errorf("%v %%, %d: not reported: %v", c.Pct, c.Min, out.Report)
		}
		if c.Pct == 0 && c.Min == 0 {
			check.Equal(t, p.Attempts, 1, "a budget that allows nothing: %+v", p)
			continue
		}
		check.Equal(t, p.Budget, (budget.Config{Ratio: c.Pct / 100, Stock: float64(c.Min), Earn: budget.Arrivals}), "%v %%, %d", c.Pct, c.Min)
		again := must.Have(Convert([]File{{"back.yaml", out.Data}}, Envoy, Options{}))
		if b, percent, least := envoyBudgetOf(again.Data); percent != c.Pct || least != c.Min {
			t.Errorf("%v %%, %d comes back as %s", c.Pct, c.Min, b.Compact())
		}
	}
}

// Success rates are compared between endpoints, of which a breaker has one: the published
// factor is reported as lost.
func TestPublishedOutlierIsLost(t *testing.T) {
	var v struct {
		Threshold []struct {
			Factor float64 `json:"stdev_factor"`
		} `json:"success_rate_threshold"`
	}
	vectors(t, "envoy_outlier.json", &v)
	text := fmt.Sprintf(`{"name": "x", "outlier_detection": {"consecutive_5xx": 7, "success_rate_stdev_factor": %d, "max_ejection_percent": 50}}`, int(v.Threshold[0].Factor*1000))
	out := must.Have(Convert([]File{{"c.json", []byte(text)}}, Lull, Options{}))
	want := []string{"outlier_detection", "outlier_detection", "outlier_detection.success_rate_stdev_factor", "outlier_detection.max_ejection_percent"}
	check.Slices(t, losses(out.Report), want, "lost\n%v", out.Report)
	b := policies(t, out.Data)[0].Policy.Breaker
	if b.Off || b.Consecutive != 7 || b.ConsecutiveFor != -1 || b.OpenFor != 30*time.Second || b.OpenMax != 300*time.Second {
		t.Errorf("breaker %+v", b)
	}
}

func TestPublishedGatewayLimits(t *testing.T) {
	var v struct {
		Defaults struct {
			Budget struct {
				Percent  int
				Interval string
			}
			Min struct {
				Count    int
				Interval string
			} `json:"minRetryRate"`
		} `json:"retryConstraint_defaults"`
		Limits struct {
			Percent  []int
			Interval []string
			Pattern  string `json:"duration_pattern"`
			Codes    []int
			Least    int   `json:"attempts_min"`
			Must     []int `json:"must_support_codes"`
		}
	}
	vectors(t, "gateway_gep3388_1731.json", &v)
	d := v.Defaults
	interval, _ := time.ParseDuration(d.Budget.Interval)
	every, _ := time.ParseDuration(d.Min.Interval)
	if want := (budget.Config{Ratio: float64(d.Budget.Percent) / 100, Window: interval, Floor: float64(d.Min.Count) / every.Seconds(), Earn: budget.Arrivals}); gatewayBudget != want {
		t.Errorf("by default %+v, want %+v", gatewayBudget, want)
	}
	check.Equal(t, gatewayDuration.String(), v.Limits.Pattern, "the pattern of durations")
	route := func(retry string) error {
		_, err := Convert([]File{{"r.yaml", []byte("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {rules: [{retry: " + retry + ", backendRefs: [{name: x}]}]}\n")}}, Lull, Options{})
		return err
	}
	traffic := func(constraint string) error {
		_, err := Convert([]File{{"r.yaml", []byte("apiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy\nspec: {targetRefs: [{name: x}], retryConstraint: " + constraint + "}\n")}}, Lull, Options{})
		return err
	}
	l := v.Limits
	for what, c := range map[string]struct {
		err  error
		good bool
	}{
		"least code":     {route(fmt.Sprintf("{codes: [%d, %d]}", l.Codes[0], l.Codes[1])), true},
		"code below":     {route(fmt.Sprintf("{codes: [%d]}", l.Codes[0]-1)), false},
		"code above":     {route(fmt.Sprintf("{codes: [%d]}", l.Codes[1]+1)), false},
		"attempts":       {route(fmt.Sprintf("{attempts: %d}", l.Least)), true},
		"attempts below": {route(fmt.Sprintf("{attempts: %d}", l.Least-1)), false},
		"percent":        {traffic(fmt.Sprintf("{budget: {percent: %d, interval: %s}}", l.Percent[1], l.Interval[1])), true},
		"percent above":  {traffic(fmt.Sprintf("{budget: {percent: %d}}", l.Percent[1]+1)), false},
		"interval":       {traffic(fmt.Sprintf("{budget: {interval: %s}}", l.Interval[0])), true},
		"interval below": {traffic("{budget: {interval: 999ms}}"), false},
		"interval above": {traffic("{budget: {interval: 1h1ms}}"), false},
		"duration":       {route("{backoff: 1.5s}"), false},
	} {
		check.Equal(t, c.err == nil, c.good, "%s: %v", what, c.err)
	}
	f := failuresOf(lull.Policy{}.WithDefaults())
	for _, status := range l.Must {
		if !f.retried(status) {
			t.Errorf("%d is not retried", status)
		}
	}
}

// The figures of package rivals are those that unsaid fields have.
func TestTheBasesAreThere(t *testing.T) {
	for _, f := range []Format{GRPC, Istio, Envoy, Gateway} {
		check.Equal(t, (base{}).of(f).policy.Validate(), nil, "%v", f)
	}
	istio, name := base{}.of(Istio).policy, base{}.of(Istio).preset
	if istio.Attempts != 3 || istio.Backoff != (backoff.Schedule{Base: proxyBase, Cap: proxyBase * proxyGrowth}) || name != "istio" || !istio.Budget.Unlimited || !istio.Breaker.Off {
		t.Errorf("istio: %+v", istio)
	}
	envoy := base{}.of(Envoy).policy
	if envoy.Deadline != 15*time.Second || envoy.Attempts != 1 || envoy.HintLimit != math.MaxInt64 || envoy.Hedge != (hedge.Config{}) {
		t.Errorf("envoy: %+v", envoy)
	}
}
