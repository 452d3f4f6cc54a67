package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// A source is a kind of file that lull learn reads.
type source struct {
	name   string
	served bool // written by the server, or by a proxy before it
	write  func(w *world, out io.Writer)
	file   string
	flags  []string // of lull learn
}

// sources are the kinds, as flights are exported.
var sources = []source{
	{"nginx", true, writeNginx(false), "access.log", nil},
	{"nginx $msec", true, writeNginx(true), "access.log", nil},
	{"JSON lines", false, writeLines, "attempts.jsonl", nil},
	{"CSV", false, writeCSV, "attempts.csv", nil},
	{"Envoy", false, writeEnvoy, "envoy.log", nil},
	{"Prometheus text", false, writePrometheus, "scrapes.prom", nil},
	{"OTLP JSON", false, writeOTLP, "metrics.json", nil},
}

// export writes what the flight of w has left, and returns the arguments of lull learn.
func (s source) export(w *world, folder string) []string {
	path := filepath.Join(folder, s.file)
	f := must.Have(os.Create(path))
	defer f.Close()
	out := bufio.NewWriter(f)
	s.write(w, out)
	must.Succeed(out.Flush())
	return append([]string{path}, s.flags...)
}

// status is what a proxy before the service logs.
func status(a sim.AttemptEnd) int {
	switch a.Code {
	case "":
		return 200
	case engine.CodeTimeout, "canceled":
		return 499
	case "503", "429":
		return must.Have(strconv.Atoi(a.Code))
	}
	return 502 // the connection was refused or broken
}

func writeNginx(msec bool) func(*world, io.Writer) {
	return func(w *world, out io.Writer) {
		for _, a := range w.attempts {
			at := w.zero.Add(a.Ended)
			fmt.Fprintf(out, "10.0.0.%d - - [%s] \"GET /items/%d?q=%x HTTP/1.1\" %d 612 \"-\" \"client/1.0\" ", 1+a.Process, at.Format("02/Jan/2006:15:04:05 -0700"), a.Call%1000, a.Call, status(a))
			if msec {
				fmt.Fprintf(out, "%d.%03d ", at.Unix(), at.Nanosecond()/1e6)
			}
			fmt.Fprintf(out, "%.3f\n", float64(at.UnixMilli()-w.zero.Add(a.Began).UnixMilli())/1000) // as of the clock that nginx reads once in each round
		}
	}
}

// outcome is what a client logs: the status, or what happened instead.
func outcome(a sim.AttemptEnd) string {
	if a.Code == "" {
		return "200"
	}
	return a.Code
}

func writeLines(w *world, out io.Writer) {
	for _, a := range w.attempts {
		fmt.Fprintf(out, `{"start":%q,"status":%q,"duration_seconds":%.6f,"attempt":%d,"path":"/items/%d"}`+"\n", w.zero.Add(a.Began).Format(time.RFC3339Nano), outcome(a), (a.Ended - a.Began).Seconds(), a.Number, a.Call%1000)
	}
}

func writeCSV(w *world, out io.Writer) {
	fmt.Fprintln(out, "start,status,duration_seconds,attempt")
	for _, a := range w.attempts {
		fmt.Fprintf(out, "%s,%s,%.6f,%d\n", w.zero.Add(a.Began).Format(time.RFC3339Nano), outcome(a), (a.Ended - a.Began).Seconds(), a.Number)
	}
}

// writeEnvoy writes the default format of an Envoy beside the callers.
func writeEnvoy(w *world, out io.Writer) {
	for _, a := range w.attempts {
		code, flags, upstream := status(a), "-", "10.0.1.1:8080"
		took := fmt.Sprint((a.Ended - a.Began).Milliseconds())
		answered := took
		switch code {
		case 499:
			code, flags, answered = 0, "DC", "-"
		case 502:
			code, flags, answered = 503, "UF", "-"
		}
		fmt.Fprintf(out, "[%s] \"GET /items/%d HTTP/1.1\" %d %s 0 612 %s %s \"-\" \"client/1.0\" \"%016x\" \"api\" \"%s\"\n",
			w.zero.Add(a.Began).Format("2006-01-02T15:04:05.000Z"), a.Call%1000, code, flags, took, answered, a.Call, upstream)
	}
}

// bounds are those of http.client.request.duration, in seconds.
var bounds = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

const scrape = 5 * time.Second

// A series is a histogram of one process and one outcome.
type series struct {
	process int
	outcome string
}

type histogram struct {
	counts []int // one more than bounds
	n      int
	sum    float64
}

// scrapes calls do with what was counted until each scrape.
func (w *world) scrapes(do func(at time.Time, of []series, all map[series]*histogram)) {
	all := map[series]*histogram{}
	var of []series
	for p := range w.processes { // from the beginning on, as 0
		s := series{p, "200"}
		of, all[s] = append(of, s), newHistogram()
	}
	i := 0
	for at := time.Duration(0); at <= w.scenario.Horizon; at += scrape {
		for ; i < len(w.attempts) && w.attempts[i].Ended <= at; i++ {
			a := &w.attempts[i]
			s := series{a.Process, outcome(*a)}
			h := all[s]
			if h == nil {
				h = newHistogram()
				of, all[s] = append(of, s), h
			}
			h.add((a.Ended - a.Began).Seconds())
		}
		do(w.zero.Add(at), of, all)
	}
}

// labels are the attributes of a series, by the conventions of OpenTelemetry.
func (s series) labels() [][2]string {
	l := [][2]string{{"http.request.method", "GET"}, {"server.address", "api"}, {"server.port", "8080"}}
	if _, err := strconv.Atoi(s.outcome); err == nil {
		l = append(l, [2]string{"http.response.status_code", s.outcome})
	}
	if s.outcome != "200" {
		l = append(l, [2]string{"error.type", s.outcome})
	}
	return l
}

func newHistogram() *histogram { return &histogram{counts: make([]int, len(bounds)+1)} }

func (h *histogram) add(seconds float64) {
	i, _ := slices.BinarySearch(bounds, seconds)
	h.counts[i]++
	h.n++
	h.sum += seconds
}

const metric = "http_client_request_duration_seconds"

func writePrometheus(w *world, out io.Writer) {
	fmt.Fprintf(out, "# HELP %s Duration of HTTP client requests.\n# TYPE %s histogram\n", metric, metric)
	w.scrapes(func(at time.Time, of []series, all map[series]*histogram) {
		for _, s := range of {
			all[s].expose(out, fmt.Sprintf(`instance="10.0.0.%d:9090",job="shop",`, 1+s.process)+promLabels(s), fmt.Sprint(" ", at.UnixMilli()))
		}
	})
}

func promLabels(s series) string {
	var all []string
	for _, l := range s.labels() {
		all = append(all, fmt.Sprintf("%s=%q", strings.ReplaceAll(l[0], ".", "_"), l[1]))
	}
	return strings.Join(all, ",")
}

// expose writes h in the text format of Prometheus; at is a space and a time, or nothing.
func (h *histogram) expose(out io.Writer, labels, at string) {
	sum := 0
	for i, n := range h.counts {
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		sum += n
		fmt.Fprintf(out, "%s_bucket{%s,le=%q} %d%s\n", metric, labels, le, sum, at)
	}
	fmt.Fprintf(out, "%s_sum{%s} %g%s\n%s_count{%s} %d%s\n", metric, labels, h.sum, at, metric, labels, h.n, at)
}

// writeOTLP writes a line for each export, as the file exporter of the OpenTelemetry collector does.
func writeOTLP(w *world, out io.Writer) {
	type object = map[string]any
	attributes := func(pairs ...[2]string) (all []object) {
		for _, p := range pairs {
			all = append(all, object{"key": p[0], "value": object{"stringValue": p[1]}})
		}
		return all
	}
	start := strconv.FormatInt(w.zero.UnixNano(), 10)
	e := json.NewEncoder(out)
	w.scrapes(func(at time.Time, of []series, all map[series]*histogram) {
		points := make([][]object, w.processes)
		for _, s := range of {
			h := all[s]
			var counts []string
			for _, n := range h.counts {
				counts = append(counts, strconv.Itoa(n))
			}
			points[s.process] = append(points[s.process], object{"attributes": attributes(s.labels()...), "startTimeUnixNano": start, "timeUnixNano": strconv.FormatInt(at.UnixNano(), 10),
				"count": strconv.Itoa(h.n), "sum": h.sum, "bucketCounts": counts, "explicitBounds": bounds})
		}
		var resources []object
		for p := range points {
			resources = append(resources, object{"resource": object{"attributes": attributes([2]string{"service.name", "shop"}, [2]string{"service.instance.id", fmt.Sprint("shop-", p)})},
				"scopeMetrics": []object{{"scope": object{"name": "http"}, "metrics": []object{{"name": "http.client.request.duration", "unit": "s", "histogram": object{"aggregationTemporality": 2, "dataPoints": points[p]}}}}}})
		}
		must.Succeed(e.Encode(object{"resourceMetrics": resources}))
	})
}
