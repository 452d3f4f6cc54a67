package source

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/internal/must"
)

// exposition is a dump of a client's metrics every 15 s: 10 requests a second of 20 ms, of which one in ten is a 503, until it is
// started anew after a minute.
func exposition(metric string, stamp func(second int) string) string {
	var out strings.Builder
	for second := 0; second <= 120; second += 15 {
		n := 10 * second
		if second > 60 {
			n = 10 * (second - 60)
		}
		for _, code := range []string{"200", "503"} {
			m := n * 9 / 10
			if code == "503" {
				m = n / 10
			}
			if m == 0 && code == "503" {
				continue // there was none yet
			}
			l := fmt.Sprintf(`server_address="db.internal",http_response_status_code=%q,instance="a"`, code)
			for _, b := range []struct {
				le string
				n  int
			}{{"0.01", 0}, {"0.025", m}, {"0.1", m}, {"+Inf", m}} {
				fmt.Fprintf(&out, "%s_bucket{%s,le=%q} %d%s\n", metric, l, b.le, b.n, stamp(second))
			}
			fmt.Fprintf(&out, "%s_sum{%s} %g%s\n%s_count{%s} %d%s\n", metric, l, float64(m)*.02, stamp(second), metric, l, m, stamp(second))
		}
	}
	return out.String()
}

const noon = 1795953600 // 2026-11-29 12:00 UTC

// What counters grow by between two samples is counted in the steps between them. A counter that begins at 0 again has counted since
// then, and one that is new was 0 before.
func TestPrometheusText(t *testing.T) {
	for name, stamp := range map[string]func(int) string{
		"prometheus":  func(s int) string { return fmt.Sprintf(" %d000", noon+s) },
		"openmetrics": func(s int) string { return fmt.Sprintf(" %d.0", noon+s) },
	} {
		d := mustRead(t, "# TYPE x histogram\n"+exposition("http_client_request_duration_seconds", stamp)+"# EOF", Options{})
		s := find(t, d, observed.Attempts, "service-1", "")
		n, _ := total(s)
		if len(s.Points) != 8 || s.Step != 15*time.Second || n != "map[200:1080 503:120]" {
			t.Errorf("%s: %d points of %v, %v", name, len(s.Points), s.Step, n)
		}
		if p := s.Points[4]; p.Missing || math.Abs(p.Ended["503"].N-15) > 1e-9 || p.Ended["200"].Counts[1] != p.Ended["200"].N || p.Began != -1 {
			t.Errorf("after the restart: %+v", p.Ended["503"])
		}
		if fmt.Sprint(s.Edges) != "[0.01 0.025 0.1]" || s.Exact || s.Processes != 1 {
			t.Errorf("edges %v, processes %d", s.Edges, s.Processes)
		}
		const want = "2× line 0: a counter began at 0 again: a process was started anew, and what it counted between the last sample and that is not known"
		if p := problems(d); p != want {
			t.Errorf("%s: %s", name, p)
		}
	}
}

// dump is what text becomes at each time: %[1]d is the second, %[2]d the time in milliseconds.
func dump(text string, seconds ...int) string {
	var out strings.Builder
	for _, s := range seconds {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "new ") { // a series that appears later
				if line = line[4:]; s == 0 {
					continue
				}
			}
			fmt.Fprintf(&out, line, s, int64(noon+s)*1000)
		}
	}
	return out.String()
}

// Metrics whose times are not by code share them among the codes.
func TestEnvoyClusters(t *testing.T) {
	d := mustRead(t, dump(`envoy_cluster_upstream_rq_total{envoy_cluster_name="shop"} %[1]d00 %[2]d
envoy_cluster_upstream_rq{envoy_response_code="200",envoy_cluster_name="shop"} %[1]d80 %[2]d
new envoy_cluster_upstream_rq{envoy_response_code="503",envoy_cluster_name="shop"} %[1]d0 %[2]d
new envoy_cluster_retry_upstream_rq{envoy_response_code="503",envoy_cluster_name="shop"} %[1]d0 %[2]d
envoy_cluster_upstream_rq_retry{envoy_cluster_name="shop"} %[1]d0 %[2]d
envoy_cluster_upstream_rq_active{envoy_cluster_name="shop"} 7 %[2]d
envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="shop",le="25"} %[1]d50 %[2]d
envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="shop",le="50"} %[1]d90 %[2]d
envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="shop",le="+Inf"} %[1]d90 %[2]d
envoy_cluster_upstream_rq_time_sum{envoy_cluster_name="shop"} %[1]d000 %[2]d
envoy_cluster_upstream_rq_time_count{envoy_cluster_name="shop"} %[1]d90 %[2]d
envoy_cluster_upstream_rq{envoy_response_code="200",envoy_cluster_name="other"} %[1]d %[2]d
`, 0, 10, 20, 30), Options{Service: "shop"})
	if len(d.Series) != 1 {
		t.Fatalf("%d series", len(d.Series))
	}
	s := find(t, d, observed.Attempts, "shop", "")
	p := s.Points[1]
	if s.Step != 10*time.Second || fmt.Sprint(s.Edges) != "[0.025 0.05]" || p.Retries != 100 || p.Ended["200"].N != 1000 || p.Ended["503"].N != 200 {
		t.Errorf("%v, %v: %+v", s.Step, s.Edges, p)
	}
	b := p.Ended["200"] // of 1000 samples of times 1000 are up to 25 ms
	if math.Abs(b.Counts[0]-1000) > 1e-6 || math.Abs(b.Counts[1]) > 1e-6 {
		t.Errorf("%+v", b)
	}
	if n, _ := total(s); n != "map[200:3000 503:600]" {
		t.Error(n) // those of the first 10 s, too
	}
}

func TestIstio(t *testing.T) {
	const labels = `{reporter="%s",destination_service_name="shop",response_code="%s",response_flags="%s"}`
	text := ""
	for _, l := range []string{fmt.Sprintf(labels, "source", "200", "-"), fmt.Sprintf(labels, "source", "504", "UT"), fmt.Sprintf(labels, "destination", "200", "-")} {
		text += "istio_requests_total" + l + " %[1]d %[2]d\n" + "istio_request_duration_milliseconds_count" + l + " %[1]d %[2]d\n" + "istio_request_duration_milliseconds_sum" + l + " %[1]d0 %[2]d\n" +
			"istio_request_duration_milliseconds_bucket" + strings.Replace(l, "}", `,le="25"}`, 1) + " %[1]d %[2]d\n"
	}
	d := mustRead(t, dump(text, 0, 15, 30), Options{})
	if got, want := outcomes2(d), "calls shop : 200×30 12 ms timeout×30 12 ms\nserved shop : 200×30 12 ms"; got != want {
		t.Error(got)
	}
}

// lullotel has first attempts that succeed in the duration of calls, and all others in that of attempts.
func TestLullMetrics(t *testing.T) {
	d := mustRead(t, dump(`retry_calls_total{dependency="shop",outcome="success_first"} %[1]d0 %[2]d
retry_calls_total{dependency="shop",outcome="success_retry"} %[1]d %[2]d
retry_calls_total{dependency="shop",outcome="failed_deadline"} %[1]d %[2]d
retry_call_duration_seconds_bucket{dependency="shop",outcome="success_first",le="0.05"} %[1]d0 %[2]d
retry_call_duration_seconds_count{dependency="shop",outcome="success_first"} %[1]d0 %[2]d
retry_call_duration_seconds_sum{dependency="shop",outcome="success_first"} %[1]d %[2]d
retry_call_duration_seconds_bucket{dependency="shop",outcome="success_retry",le="0.05"} 0 %[2]d
retry_call_duration_seconds_count{dependency="shop",outcome="success_retry"} %[1]d %[2]d
retry_call_duration_seconds_sum{dependency="shop",outcome="success_retry"} %[1]d %[2]d
retry_call_duration_seconds_bucket{dependency="shop",outcome="failed_deadline",le="0.05"} 0 %[2]d
retry_call_duration_seconds_count{dependency="shop",outcome="failed_deadline"} %[1]d %[2]d
retry_call_duration_seconds_sum{dependency="shop",outcome="failed_deadline"} %[1]d %[2]d
retry_attempt_duration_seconds_bucket{dependency="shop",resend="false",le="0.05"} 0 %[2]d
retry_attempt_duration_seconds_count{dependency="shop",resend="false"} %[1]d0 %[2]d
retry_attempt_duration_seconds_sum{dependency="shop",resend="false"} %[1]d %[2]d
retry_attempt_failures_total{dependency="shop",error_type="timeout"} %[1]d %[2]d
retry_attempt_failures_total{dependency="shop",error_type="503"} %[1]d %[2]d
retry_attempts_total{dependency="shop",resend="true"} %[1]d %[2]d
retry_attempts_total{dependency="shop",resend="false"} %[1]d2 %[2]d
`, 0, 10, 20), Options{})
	const want = `calls shop : 200×220 27 ms timeout×20 50 ms
attempts shop : 200×220 27 ms 503×20 50 ms timeout×20 50 ms`
	if got := outcomes2(d); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s := find(t, d, observed.Attempts, "shop", ""); s.Points[0].Retries != 10 {
		t.Errorf("%+v", s.Points[0])
	}
}

// Steps between samples that are too far apart are missing.
func TestGap(t *testing.T) {
	const text = `http_server_request_duration_seconds_count{http_response_status_code="200",instance="a"} %[1]d %[2]d
http_server_request_duration_seconds_count{http_response_status_code="200",instance="b"} %[1]d %[2]d
`
	d := mustRead(t, dump(text, 0, 15, 30, 45, 120, 135, 150), Options{})
	s := d.Series[0]
	for i, p := range s.Points {
		if missing := i >= 3 && i < 8; p.Missing != missing || !missing && p.Ended["200"].N != 30 {
			t.Errorf("step %d: %+v", i, p)
		}
	}
	if s.Processes != 2 {
		t.Errorf("%d processes", s.Processes)
	}
}

// A damaged line is counted, and what follows is read.
func TestDamagedDump(t *testing.T) {
	text := dump(`http_server_request_duration_seconds_count{http_response_status_code="200"} %[1]d %[2]d
`, 0, 15, 30)
	d := mustRead(t, "\x00\xff{\n# HELP x\nx{a=\"b} 1\n"+text+`http_server_request_duration_seconds_count{http_response_status_code="200"} -5 `+"1795953700000\n"+
		`http_server_request_duration_seconds_count{http_response_status_code="200"} 7 `+"1795953600000\nhttp_server_request_dur", Options{Format: "prometheus"})
	const want = `2× line 1: the line is not a sample of Prometheus' text format
1× line 7: http_server_request_duration_seconds_count is "-5": want a number that is not negative
1× line 8: another value of the same metric at the same time is not used
1× line 9: the last line has no end, and is not used: it may be cut off`
	if got := problems(d); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n, _ := total(d.Series[0]); n != "map[200:30]" {
		t.Error(n)
	}
}

func TestParseSample(t *testing.T) {
	for line, want := range map[string]string{
		`up 1`:                                   "up 1 0 map[]",
		`a:b{x="1",} 2.5e3 1795953600000`:        "a:b 2500 1795953600000000000 map[x:1]",
		`a {x="a\"},{\\b\n", y = "2"} +Inf`:      "a +Inf 0 map[x:a\"},{\\b\n y:2]",
		`{"http.client","server.address"="b"} 3`: "http.client 3 0 map[server_address:b]",
		`a{le="0.5"} 7 1795953600.5 # {trace_id="x"} 0.4 1795953600.2`: "a 7 1795953600500000000 map[le:0.5]",
		`a{x="1"} NaN`: "a NaN 0 map[x:1]",
		`a{x="1" 2`:    "", `a`: "", `a{} `: "", `{} 1`: "", `1a 2`: "", `a 1 2 3`: "", `a{x=1} 2`: "", "": "",
	} {
		labels := map[string]string{}
		got := ""
		if name, v, ns, ok := parseSample([]byte(line), labels); ok {
			got = fmt.Sprint(name, " ", v, " ", ns, " ", labels)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// Without timestamps each dump has the time of its file.
func TestDumps(t *testing.T) {
	var names []string
	for i := range 3 {
		name := filepath.Join(t.TempDir(), "dump")
		text := fmt.Sprintf("# TYPE http_server_active_requests gauge\nhttp_server_active_requests 3\nhttp_server_request_duration_seconds_count{http_response_status_code=\"200\"} %d\n", 100*i)
		must.Succeed(os.WriteFile(name, []byte(text), 0o600))
		must.Succeed(os.Chtimes(name, time.Time{}, time.Unix(noon+int64(10*i), 0)))
		names = append(names, name)
	}
	d := must.Have(Read(t.Context(), names, Options{}))
	s := d.Series[0]
	if len(s.Points) != 2 || s.Points[0].Ended["200"].N != 100 || !strings.Contains(problems(d), "the file's last change, 2026-11-29T12:00:00Z") {
		t.Errorf("%+v, %+v", s.Points, d.Sources)
	}
	if _, err := read(t, "up 1\nhttp_server_request_duration_seconds_count 5\n", Options{}); err == nil {
		t.Error("a dump from standard input has no time")
	}
}

const otlpLine = `{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"client"}},{"key":"service.instance.id","value":{"stringValue":"%[3]s"}}]},"scopeMetrics":[{"scope":{"name":"x"},"metrics":[` +
	`{"name":"http.client.request.duration","unit":"s","histogram":{"aggregationTemporality":%[4]d,"dataPoints":[{"startTimeUnixNano":"%[1]d","timeUnixNano":"%[2]d","count":"%[5]d","sum":%[5]d.5,` +
	`"bucketCounts":["%[5]d","0"],"explicitBounds":[0.1],"attributes":[{"key":"http.response.status_code","value":{"intValue":"200"}},{"key":"server.address","value":{"stringValue":"db.internal"}}],"exemplars":[{"traceId":"5b8efff798038103d269b633813fc60c","asDouble":0.05}]}]}},` +
	`{"name":"http.server.request.duration","unit":"ms","exponentialHistogram":{"aggregationTemporality":%[4]d,"dataPoints":[{"startTimeUnixNano":"%[1]d","timeUnixNano":"%[2]d","count":"%[5]d","sum":%[5]d,"scale":0,"zeroCount":"0",` +
	`"positive":{"offset":2,"bucketCounts":["0","%[5]d"]},"attributes":[{"key":"http.response.status_code","value":{"intValue":"503"}}]}]}},` +
	`{"name":"http.client.active_requests","unit":"{request}","sum":{"aggregationTemporality":2,"dataPoints":[{"timeUnixNano":"%[2]d","asInt":"4","attributes":[{"key":"server.address","value":{"stringValue":"db.internal"}}]}]}}]}]}]}` + "\n"

// Cumulative and delta are the same requests, in explicit buckets and in exponential ones.
func TestOTLP(t *testing.T) {
	for temporality, counts := range map[int][]int{1: {100, 50, 50}, 2: {100, 150, 200}} {
		text := ""
		for i, n := range counts {
			start, end := int64(noon), int64(noon+10*(i+1))
			if temporality == 1 {
				start = int64(noon + 10*i)
			}
			text += fmt.Sprintf(otlpLine, start*1e9, end*1e9, "a", temporality, n)
		}
		d := mustRead(t, text+`{"resourceMetrics":[{"scope`, Options{})
		s := find(t, d, observed.Attempts, "service-1", "")
		if n, _ := total(s); n != "map[200:200]" || len(s.Points) != 3 || s.Points[0].Ended["200"].N != 100 || fmt.Sprint(s.Edges) != "[0.1]" || s.Processes != 1 {
			t.Errorf("%d: %v, %+v", temporality, n, s.Points)
		}
		s = find(t, d, observed.Served, "", "")
		if fmt.Sprint(s.Edges) != "[0.008 0.016]" || s.Points[1].Ended["503"].Counts[1] != 50 { // 2^3 to 2^4 ms
			t.Errorf("%v: %+v", s.Edges, s.Points[1].Ended["503"])
		}
		if got := problems(d); got != "1× line 4: "+cutOff {
			t.Error(got)
		}
	}
	if _, err := read(t, `{"resourceMetrics":[]}`+"\n", Options{}); err == nil {
		t.Error("no metrics")
	}
}

type answers func(*http.Request) string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Status: "200 OK", Body: io.NopCloser(strings.NewReader(a(r))), Request: r}, nil
}

// The API is asked for what was scraped, a quarter of an hour at a time.
func TestAPI(t *testing.T) {
	var queries []string
	client := &http.Client{Transport: answers(func(r *http.Request) string {
		queries = append(queries, r.URL.Path+" "+r.URL.Query().Get("time"))
		if len(queries) > 1 {
			return `{"status":"success","data":{"resultType":"matrix","result":[]}}`
		}
		return `{"status":"success","data":{"resultType":"matrix","result":[
{"metric":{"__name__":"http_server_request_duration_seconds","http_response_status_code":"200","instance":"a","job":"b"},"histograms":[
 [1795953600,{"count":"0","sum":"0","buckets":[]}],
 [1795953615.5,{"count":"30","sum":"1.5","buckets":[[0,"0.03","0.04","10"],[0,"0.06","0.08","20"]]}],
 [1795953630,{"count":"60","sum":"3","buckets":[[0,"0.03","0.04","20"],[0,"0.06","0.08","40"]]}]]},
{"metric":{"__name__":"http_server_request_duration_seconds_count","http_response_status_code":"500","instance":"a","job":"b"},"values":[[1795953600,"1"],[1795953630,"7"]]}]}}`
	})}
	d := must.Have(Read(t.Context(), []string{"http://me:secret@prometheus:9090/prefix"}, Options{Client: client, From: time.Unix(noon, 0), To: time.Unix(noon+1000, 0), Step: 30 * time.Second}))
	if got := fmt.Sprint(queries); got != "[/prefix/api/v1/query 1795954500.000 /prefix/api/v1/query 1795954600.000]" {
		t.Error(got)
	}
	s := find(t, d, observed.Served, "", "")
	if b := s.Points[0].Ended["200"]; b.N != 60 || fmt.Sprint(s.Edges, b.Counts) != "[0.03 0.04 0.06 0.08] [0 20 0 40 0]" || s.Points[0].Ended["500"].N != 6 {
		t.Errorf("%v %+v", s.Edges, b)
	}
	if name := d.Sources[0].Name; strings.Contains(name, "secret") {
		t.Error(name)
	}
	client.Transport = answers(func(*http.Request) string { return `{"status":"error","error":"query timed out"}` })
	_, err := Read(t.Context(), []string{"http://prometheus:9090"}, Options{Client: client, From: time.Unix(noon, 0), To: time.Unix(noon+1000, 0)})
	if err == nil || !strings.Contains(err.Error(), "query timed out") {
		t.Error(err)
	}
	if _, err := Read(t.Context(), []string{"http://prometheus:9090"}, Options{}); err == nil || err.Error() != "http://prometheus:9090: from and to are missing: want the time to read" {
		t.Error(err)
	}
}
