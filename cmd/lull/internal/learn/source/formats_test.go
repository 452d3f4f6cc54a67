package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// outcomes2 returns how each series ended, with the mean time in milliseconds.
func outcomes2(d *observed.Data) string {
	var all []string
	for _, s := range d.Series {
		n, sum := map[string]float64{}, map[string]float64{}
		for _, p := range s.Points {
			for name, b := range p.Ended {
				n[name] += b.N
				sum[name] += sum2(s, b)
			}
		}
		text := fmt.Sprint([]string{"calls", "attempts", "served"}[s.Side], " ", s.Service, " ", s.Host, ":")
		for _, name := range []string{"200", "204", "418", "502", "503", "504", "timeout", "refused", "reset", "canceled", "error"} {
			if n[name] > 0 {
				mean := must.Have(strconv.ParseFloat(fmt.Sprintf("%.2g", 1000*sum[name]/n[name]), 64)) // bars have 1 %
				text += fmt.Sprintf(" %s×%v %v ms", name, n[name], mean)
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

// The files are what servers write by themselves; nginx.log, nginx.json and haproxy.log were written by nginx 1.22 and HAProxy 2.6.
func TestFormats(t *testing.T) {
	for name, want := range map[string]string{
		"nginx.log": `attempts  host-1: 200×6 0 ms
attempts  host-2: 503×3 0.33 ms
attempts  host-3: 502×3 0.33 ms
attempts  host-4: canceled×2 300 ms
served  : 200×12 0 ms canceled×2 300 ms`,
		"nginx.json": `attempts  host-1: 200×6 0 ms
attempts  host-2: 503×3 0.33 ms
attempts  host-3: 502×3 0.33 ms
attempts  host-4: canceled×2 300 ms
served  : 200×12 0 ms canceled×2 300 ms`,
		"haproxy.log": `served app host-1: 200×12 0.12 ms 504×2 300 ms
served down host-2: 503×1 2000 ms`,
		"envoy.log": `served  : timeout×1 600 ms
served  host-1: 204×1 230 ms canceled×1 1000 ms
served  host-2: 200×1 50 ms refused×1 5.5 ms`,
		"istio.log":  `served httpbin host-1: 200×1 22 ms 418×1 22 ms`,
		"envoy.json": `served users host-1: 200×1 50 ms canceled×1 1000 ms`,
		"caddy.json": `served  : 200×1 0.93 ms 502×1 0.012 ms`,
		"alb.log": `attempts  host-1: 200×1 120 ms
attempts  host-2: timeout×1 1000 ms
served  : 200×1 120 ms 504×1 1000 ms canceled×1 100 ms`,
		"lull.json": `calls charges : 200×2 60 ms 503×1 1500 ms error×1 250 ms
attempts charges : 200×2 60 ms 503×1 1000 ms timeout×1 400 ms canceled×1 250 ms`,
		"jmeter.csv": `served  : 200×1 120 ms 504×1 2000 ms`,
	} {
		d, err := Read(t.Context(), []string{filepath.Join("testdata", name)}, Options{Zone: time.UTC, Step: time.Hour})
		if err != nil {
			t.Error(name, err)
			continue
		}
		if got := outcomes2(d); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
		if p := problems(d); p != "" && p != "1× line 4: the proxy had no room for 10 lines before this one" {
			t.Errorf("%s: %s", name, p)
		}
		// No path, no address.
		for _, private := range []string{"users/", "charges/", "192.0.2", "10.0.", "127.0.0", "1808", "svc.cluster"} {
			if text := fmt.Sprintf("%+v", d.Series[0]); strings.Contains(text, private) {
				t.Errorf("%s: the data has %q: %s", name, private, text)
			}
		}
	}
}

// Envoy cuts durations off: 5 ms are 5 to 6 ms. nginx' are differences of two times that are cut off: 4.5 to 5.5 ms are likely.
func TestPrecision(t *testing.T) {
	d := must.Have(Read(t.Context(), []string{"testdata/envoy.log"}, Options{Step: time.Hour}))
	if e := d.Series[0].Edges; fmt.Sprintf("%.4g", e[:4]) != "[0.005 0.006 0.05 0.051]" {
		t.Errorf("%.4g", e)
	}
}

// A retry began when the wait after the attempt before was over.
func TestLullProxy(t *testing.T) {
	d := must.Have(Read(t.Context(), []string{"testdata/lull.json"}, Options{Step: 100 * time.Millisecond}))
	s := find(t, d, observed.Attempts, "charges", "")
	at := func(tenth int) observed.Point { return s.Points[tenth-int(s.Start.Sub(time.Unix(noon, 0))/s.Step)] }
	if p := at(11); p.Began != 1 || p.Retries != 1 {
		t.Errorf("the retry began at 1.1 s: %+v", p)
	}
	if p := at(15); p.Ended["timeout"] == nil {
		t.Errorf("it ended at 1.5 s: %+v", p)
	}
	if p := at(10); p.Ended["503"] == nil || p.Ended["200"] == nil {
		t.Errorf("two ended from 1 to 1.1 s: %+v", p)
	}
}

func TestFields(t *testing.T) {
	const line = `{"at":{"end":"2026-11-29 12:00:00.5"},"took":%s,"result":"OK","who":"shop","n":2}` + "\n"
	fields := map[string]string{"time": "at.end", "duration": "took", "status": "result", "service": "who", "attempt": "n", "unit": "ms"}
	d := mustRead(t, fmt.Sprintf(line, "12"), Options{Fields: fields, Zone: time.UTC})
	if got := outcomes2(d); got != "attempts shop : 200×1 12 ms" || d.Series[0].Points[0].Retries != -1 { // the end of the log: -1
		t.Error(got, d.Series[0].Points)
	}
	d = mustRead(t, fmt.Sprintf(line, `"1.5s"`)+fmt.Sprintf(line, "-3"), Options{Fields: fields, Zone: time.UTC})
	if got := outcomes2(d); got != "attempts shop : 200×1 1500 ms" || problems(d) != `1× line 2: duration is "-3": want 0 to 30 days, such as 0.123` {
		t.Error(got, problems(d))
	}
	d = mustRead(t, "what,zeit,dauer\n200,1795953600,3\n", Options{Fields: map[string]string{"status": "what", "start": "zeit", "duration": "dauer", "unit": "s", "side": "calls"}})
	if got := outcomes2(d); got != "calls  : 200×1 3000 ms" || d.Sources[0].To.Unix() != noon+3 {
		t.Error(got)
	}
	d = mustRead(t, "start,end,status\n2026-11-29T12:00:00.00Z,2026-11-29T12:00:00.25Z,refused\n", Options{})
	if s := d.Series[0]; math.Abs(sum2(s, s.Points[0].Ended["refused"])-.25) > .003 {
		t.Errorf("from start to end: %+v", s.Points)
	}
}

// What other programs write by themselves, and how spreadsheets write columns.
func TestOtherPrograms(t *testing.T) {
	for name, line := range map[string]string{
		"Traefik":           `{"DownstreamStatus":503,"Duration":5000000,"StartUTC":"2026-11-29T12:00:00.1Z","time":"2026-11-29T12:00:00Z"}`,
		"Traefik, combined": `192.0.2.1 - - [29/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 503 5 "-" "-" 17 "shop" "http://192.0.2.9:80" 5ms`,
		"Echo":              `{"time":"2026-11-29T12:00:00.1Z","status":503,"latency":5000000,"latency_human":"5ms","bytes_in":0}`,
		"pino":              `{"time":1795953600100,"res":{"statusCode":503},"responseTime":5}`,
		"ECS":               `{"@timestamp":"2026-11-29T12:00:00.1Z","http":{"response":{"status_code":503}},"event":{"duration":5000000}}`,
		"Google Cloud":      `{"timestamp":"2026-11-29T12:00:00.1Z","httpRequest":{"status":503,"latency":"0.005s"}}`,
		"JSON":              `{"time":"2026-11-29T12:00:00.1Z","statusCode":503,"durationMs":5}`,
		"JSON array":        "[\n  " + `{"time":"2026-11-29T12:00:00.1Z","status":503,"duration_ms":5},` + "\n]",
		"spreadsheet":       "Time;Status Code;Latency ms\n2026-11-29T12:00:00.1Z;503;5",
		"tabs":              "time\tstatus\tduration_ms\n2026-11-29T12:00:00.1Z\t503\t5",
	} {
		d, err := read(t, line+"\n", Options{})
		if err != nil {
			t.Error(name, err)
		} else if s := d.Series[0]; problems(d) != "" || s.Points[0].Ended["503"] == nil || math.Abs(sum2(s, s.Points[0].Ended["503"])-.005) > .0006 {
			t.Errorf("%s: %s %+v", name, problems(d), s)
		}
	}
	line := `192.0.2.1 - - [29/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 503 5 "-" "-" 5000` + "\n" // Apache's %D
	if s := mustRead(t, line, Options{LogFormat: "combined $request_time_us"}).Series[0]; math.Abs(sum2(s, s.Points[0].Ended["503"])-.005) > 1e-4 {
		t.Errorf("%+v", s)
	}
	if _, err := read(t, "(\xb5/\xfd,\x00\"x\n", Options{Fields: map[string]string{}}); err == nil || !strings.Contains(err.Error(), "the format is not known") {
		t.Error(err)
	}
}

// A damaged line is counted, and takes no other with it.
func TestDamagedCSV(t *testing.T) {
	const row = "2026-11-29T12:00:00Z,5,200\n"
	d := mustRead(t, "time,ms,status\n"+row+"x\n"+row+"\"a\"b,1,2\n"+row+row+"2026-11-29T12:00:00Z,5,2", Options{})
	const want = "1× line 3: wrong number of fields\n1× line 5: extraneous or missing \" in quoted-field\n1× line 8: " + cutOff
	if got := problems(d); got != want || d.Sources[0].Used != 4 || d.Sources[0].Lines != 8 {
		t.Errorf("%+v\n%s", d.Sources, got)
	}
}

// An error has what is wrong, and what to write instead.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		o    Options
		want string
	}{
		"no source":             {"", Options{Format: "x"}, `format is "x": want nginx, envoy, haproxy, alb, json, csv, prometheus, otlp`},
		"step":                  {"", Options{Step: 1}, "step is 1ns: want at least 100ms"},
		"from":                  {"", Options{From: time.Unix(2, 0).UTC(), To: time.Unix(1, 0).UTC()}, "from is 1970-01-01 00:00:02 +0000 UTC: want a time before 1970-01-01 00:00:01 +0000 UTC"},
		"field":                 {"", Options{Fields: map[string]string{"latency": "x"}}, "field latency=x: want time, start, duration, status, service, host or attempt, unit (s, ms, us, ns) or side (calls, attempts, served)"},
		"unit":                  {"", Options{Fields: map[string]string{"unit": "min"}}, "field unit=min: want time, start, duration, status, service, host or attempt, unit (s, ms, us, ns) or side (calls, attempts, served)"},
		"side":                  {"", Options{Fields: map[string]string{"side": "me"}}, "field side=me: want time, start, duration, status, service, host or attempt, unit (s, ms, us, ns) or side (calls, attempts, served)"},
		"empty":                 {"", Options{}, "-: want a log or metrics: EOF"},
		"unknown":               {"hello\nworld\n", Options{}, "-: the format is not known: want one of nginx, envoy, haproxy, alb, json, csv, prometheus, otlp, or a log format"},
		"no zone":               {"time,ms,status\n2026-11-29 12:00:00,5,200\n", Options{}, `-: line 2: time is "2026-11-29 12:00:00": the times have no zone: want that of the server, such as --zone UTC or --zone Europe/Berlin`},
		"no unit":               {"time,duration,status\n2026-11-29 12:00:00Z,5,200\n", Options{}, "-: line 2: duration is 5, and has no unit: want --field unit=ms, or s, us or ns"},
		"no column":             {"time,ms,status\n", Options{Fields: map[string]string{"time": "t"}}, `-: line 1: there is no column "t" (--field time): want one of time, ms, status`},
		"no time":               {"ms,status\n", Options{}, "-: line 1: no column has the time: want time, start or timestamp, or --field time=NAME"},
		"no status":             {"time,ms\n", Options{}, "-: line 1: no column has the status: want status or code, or --field status=NAME"},
		"nothing of use":        {"time,ms,status\nx,5,200\n", Options{}, `-: no line can be used as csv: line 2: time is "x": want ` + wantTime},
		"nothing in time":       {"time,ms,status\n2026-11-29 12:00:00Z,5,200\n", Options{To: time.Unix(1, 0)}, `-: no line can be used as csv: line 2: what is outside of the chosen time (from, to) is left out`},
		"format no time":        {"x", Options{LogFormat: "$status $request_time"}, `log format "$status $request_time" has no time: want $msec, $time_iso8601, $time_local, %START_TIME% or %tr`},
		"format no status":      {"x", Options{LogFormat: "%tr %Ta"}, `log format "%tr %Ta" has no status: want $status, %RESPONSE_CODE% or %ST`},
		"format together":       {"x", Options{LogFormat: "$msec$status"}, `log format: nothing separates $status from what stands before it: want a space or a quote`},
		"format and log format": {"x", Options{Format: "json", LogFormat: "$msec $status $request_time"}, `format is "json", and the log format is one of nginx: want one of both`},
		"log format of nothing": {"time,ms,status\n2026-11-29T12:00:00Z,5,200\n", Options{LogFormat: "$msec $status $request_time"}, "no source is a log of nginx: want one, or no log format"},
		"another log format":    {"x y\n", Options{LogFormat: "$msec $status $request_time"}, "-: no line can be used as nginx: line 1: the line is not one of nginx in the log format"},
		"one dump":              {"http_server_request_duration_seconds_count{http_response_status_code=\"200\"} 5 1795953600000\n", Options{}, "no metric has samples of two times: want two dumps, or one with timestamps"},
		"too long a time":       {"time,ms,status\n2026-11-29T12:00:00Z,5,200\n2026-11-29T23:00:00Z,5,200\n", Options{Step: 100 * time.Millisecond}, "step is 100ms: want longer steps, or a part of the time (from, to): the sources have 396001 of them"},
	} {
		if _, err := read(t, c.text, c.o); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	if _, err := Read(t.Context(), nil, Options{}); err == nil {
		t.Error("no source")
	}
	if _, err := Read(t.Context(), []string{"testdata/none"}, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, []string{"testdata/nginx.log"}, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// In the hour that comes twice, a time without an offset is taken as the one that is nearer to the line before. An hour that does not
// exist is a mistake.
func TestDaylightSavingTime(t *testing.T) {
	berlin := must.Have(time.LoadLocation("Europe/Berlin"))
	var log strings.Builder
	log.WriteString("time,ms,status\n")
	for start, i := time.Date(2026, 10, 24, 23, 30, 0, 0, time.UTC), 0; i < 180; i++ { // from 1:30 CEST to 3:29 CET
		log.WriteString(start.Add(time.Duration(i)*time.Minute).In(berlin).Format("2006-01-02 15:04:05") + ",5,200\n")
	}
	d := mustRead(t, log.String(), Options{Zone: berlin, Step: time.Minute})
	s := d.Series[0]
	if len(s.Points) != 180 {
		t.Fatalf("%d minutes", len(s.Points))
	}
	for i, p := range s.Points {
		if i < 179 && (p.Missing || p.Ended["200"].N != 1) {
			t.Errorf("minute %d: %+v", i, p)
		}
	}
	if p := d.Problems; len(p) != 1 || p[0].Count != 120 || p[0].Line != 32 || !strings.Contains(p[0].Text, "this hour comes twice in Europe/Berlin") {
		t.Errorf("%+v", p)
	}
	d = mustRead(t, "time,ms,status\n2026-03-29 01:59:59,5,200\n2026-03-29 02:30:00,5,200\n", Options{Zone: berlin})
	if got := problems(d); got != `1× line 3: time is "2026-03-29 02:30:00": want a time that there was in Europe/Berlin` {
		t.Error(got)
	}
}

// What can be read of a damaged file is used, and the damage is counted.
func TestDamagedGzip(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range 5000 {
		fmt.Fprintf(z, nginxLine, i/100, i*7919, i%1000)
	}
	must.Succeed(z.Close())
	whole := mustRead(t, packed.String(), Options{})
	if whole.Sources[0].Lines != 5000 || problems(whole) != "" {
		t.Errorf("%+v", whole.Sources)
	}
	d := mustRead(t, packed.String()[:packed.Len()/2], Options{})
	if n := d.Sources[0].Used; n < 500 || n > 4500 || !strings.Contains(problems(d), "the source cannot be read on: unexpected EOF") {
		t.Errorf("%d lines, %s", n, problems(d))
	}
}

func TestLogFormats(t *testing.T) {
	for format, line := range map[string]string{
		`combined $request_time`:                       `192.0.2.1 - - [29/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8.5" 0.005`,
		`$time_iso8601|$host|${status}|$request_time|`: "2026-11-29T12:00:00+00:00|a b|200|0.005|",
		`[%START_TIME(%s.%3f)%] %REQ(:METHOD):9% %RESPONSE_CODE% %DURATION% %UPSTREAM_CLUSTER%`: "[1795953600.000] GET 200 5 shop",
		`%ci:%cp %Tl %{+Q}r %ST %[var(txn.x)] %Ta`:                                              `192.0.2.1:99 29/Nov/2026:12:00:00 +0000 "GET / HTTP/1.1" 200 x 5`,
		`$remote_addr $status $upstream_response_time $msec $request_time "$http_referer"`:      `192.0.2.1 200 0.001, 0.002 : 0.003 1795953600.005 0.005 "-"`,
		`$status $request_time [$time_local] $upstream_addr`:                                    `200 0.005 [29/Nov/2026:13:00:00 +0100] 192.0.2.1:80, 192.0.2.2:80`,
	} {
		d, err := read(t, line+"\n", Options{LogFormat: format, Step: time.Hour, Zone: time.UTC})
		if err != nil || problems(d) != "" {
			t.Errorf("%s: %v", format, err)
			continue
		}
		s := d.Series[len(d.Series)-1]
		if s.Start.Unix() != noon || s.Points[0].Ended["200"].N != 1 || math.Abs(sum2(s, s.Points[0].Ended["200"])-.005) > .0006 {
			t.Errorf("%s: %+v", format, s)
		}
	}
}

// A log format is that of one source. Others are recognised.
func TestClientAndServer(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	must.Succeed(os.WriteFile(log, []byte("1795953600.005 200 0.005\n1795953601.005 200 0.005\n"), 0o600))
	d := must.Have(Read(t.Context(), []string{"testdata/openmetrics.txt", log, "testdata/envoy.json"}, Options{LogFormat: "$msec $status $request_time"}))
	var got []string
	for _, s := range d.Series {
		got = append(got, fmt.Sprint(s.Source, " ", s.Side, " ", s.Service))
	}
	if fmt.Sprint(got) != "[nginx 2  json 2 users metrics 0 shop]" {
		t.Error(got)
	}
}

// Steps get longer, and no request is lost.
func TestCoarsen(t *testing.T) {
	c := newCollector("x", 0)
	for i := range 100_000 {
		c.add(c.seriesFor(nil, seriesOf{host: fmt.Sprint(i % 3)}), &request{ended: time.Unix(noon-50_000+int64(i), 0), took: time.Duration(i%977) * time.Millisecond, outcome: 200 + i%2, precision: 1})
	}
	for len(c.steps) > 1 {
		c.coarsen()
		var began, ended uint32
		for at, n := range c.counts {
			if at.ended() {
				ended += n
			} else {
				began += n
			}
		}
		if ended != 100_000 || began != ended {
			t.Fatalf("steps of %v: %d began, %d ended", c.steps[0], began, ended)
		}
	}
}

// The address of a service is no name that a world may have. Others stay.
func TestAddressesAreNoNames(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.7": "service-1", "10.0.0.7:8080": "service-1", "[::1]:80": "service-1", "::1": "service-1", "shop": "shop", "shop:80": "shop:80", "10": "10"} {
		d := mustRead(t, fmt.Sprintf(`{"time":"2026-11-29T12:00:00Z","ms":5,"status":200,"service":%q}`+"\n", address), Options{})
		check.Equal(t, d.Series[0].Service, want, "name of %s", address)
	}
	d := mustRead(t, `{"time":"2026-11-29T12:00:00Z","ms":5,"status":200,"service":"10.0.0.7"}`+"\n", Options{Service: "10.0.0.7"})
	check.Equal(t, d.Series[0].Service, "10.0.0.7", "a name that the user has given")
}
