package source

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/internal/must"
)

func read(t *testing.T, text string, o Options) (*observed.Data, error) {
	t.Helper()
	o.Stdin = strings.NewReader(text)
	return Read(t.Context(), []string{"-"}, o)
}

func mustRead(t *testing.T, text string, o Options) *observed.Data {
	t.Helper()
	d, err := read(t, text, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// total returns how many requests of a series ended in each way, and their mean time.
func total(s *observed.Series) (string, float64) {
	n, sum, all := map[string]float64{}, 0., 0.
	for _, p := range s.Points {
		for name, b := range p.Ended {
			n[name] += b.N
			sum += sum2(s, b)
			all += b.N
		}
	}
	return fmt.Sprint(n), sum / all
}

// sum2 returns the sum of the times, in seconds, as if all were in the middle of their bars.
func sum2(s *observed.Series, b *observed.Bars) (sum float64) {
	for i, n := range b.Counts {
		switch {
		case n == 0:
		case i == len(s.Edges):
			sum += n * s.Edges[i-1]
		case i > 0:
			sum += n * (s.Edges[i] + s.Edges[i-1]) / 2
		case !s.Exact:
			sum += n * s.Edges[0] / 2
		}
	}
	return sum
}

func find(t *testing.T, d *observed.Data, side observed.Side, service, host string) *observed.Series {
	t.Helper()
	for _, s := range d.Series {
		if s.Side == side && s.Service == service && s.Host == host {
			return s
		}
	}
	t.Fatalf("no series with side %v of %q, %q", side, service, host)
	return nil
}

func problems(d *observed.Data) string {
	var all []string
	for _, p := range d.Problems {
		all = append(all, fmt.Sprintf("%d× line %d: %s", p.Count, p.Line, p.Text))
	}
	return strings.Join(all, "\n")
}

const nginxLine = `192.0.2.1 - - [29/Nov/2026:18:05:%02d +0000] "GET /users/%d HTTP/1.1" 200 612 "-" "curl/8.5 (\x22x\x22)" 0.%03d` + "\n"

// Each line of a log tells when a request ended and how long it took, so when it began.
func TestNginx(t *testing.T) {
	var log strings.Builder
	for i := range 600 {
		fmt.Fprintf(&log, nginxLine, i/10, i, i%10*10)
	}
	d := mustRead(t, log.String(), Options{})
	s := find(t, d, observed.Served, "", "")
	if n, mean := total(s); n != "map[200:600]" || math.Abs(mean-.045) > 1e-9 {
		t.Errorf("%v, mean %v", n, mean)
	}
	if len(s.Points) != 60 || s.Step != time.Second || s.Resolution != time.Second || !s.Start.Equal(time.Date(2026, 11, 29, 18, 5, 0, 0, time.UTC)) {
		t.Errorf("%d points of %v from %v, resolution %v", len(s.Points), s.Step, s.Start, s.Resolution)
	}
	if p := s.Points[10]; p.Missing || p.Ended["200"].N != 10 || p.Began != 10 {
		t.Errorf("a point: %+v", p)
	}
	// 30 ms in milliseconds are from 29.5 to 30.5.
	if fmt.Sprintf("%.4v", s.Edges[:4]) != "[0.0005 0.0095 0.0105 0.0195]" {
		t.Errorf("edges %v", s.Edges)
	}
	if src := d.Sources[0]; src.Kind != "nginx" || src.Lines != 600 || src.Used != 600 || src.To.Sub(src.From) != 59*time.Second {
		t.Errorf("%+v", src)
	}
	if p := problems(d); p != "" {
		t.Error(p)
	}
}

// What is appended to "combined" is guessed by its form.
func TestNginxWithAppendedFields(t *testing.T) {
	for name, rest := range map[string]string{
		"bare":         `0.123`,
		"main":         `"203.0.113.9" 0.123`,
		"keys":         `rt=0.123 uct="0.001" uht="0.120" urt="0.122"`,
		"bare lists":   `0.123 0.100, 0.022 502, 200`,
		"quoted lists": `1796000000.123 0.123 "192.0.2.7:80, 192.0.2.8:80" "0.100, 0.022" "502, 200"`,
		"pipe":         `"-" rt=0.123 uaddr="192.0.2.7:80" us="200"`,
	} {
		line := `192.0.2.1 - - [29/Nov/2026:18:05:00 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8.5" ` + rest + "\n"
		d, err := read(t, strings.Repeat(line, 3), Options{})
		if err != nil {
			t.Error(name, err)
			continue
		}
		if _, mean := total(find(t, d, observed.Served, "", "")); math.Abs(mean-.123) > 1e-3 || problems(d) != "" {
			t.Errorf("%s: mean %v, %s", name, mean, problems(d))
		}
		var more []string
		for _, s := range d.Series[:len(d.Series)-1] {
			n, _ := total(s)
			more = append(more, fmt.Sprint(s.Side, s.Host, n))
		}
		want := map[string]string{"keys": "[1map[200:3]]", "bare lists": "[1map[200:3 502:3]]", "quoted lists": "[1host-1map[200:3] 1host-2map[502:3]]"}[name]
		if got := fmt.Sprint(more); got != want && want != "" {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The attempts of a request are one after the other, and the last ended with it.
func TestUpstreamAttempts(t *testing.T) {
	const format = `$remote_addr [$time_iso8601] $msec "$request" $status $request_time $upstream_addr $upstream_response_time $upstream_status`
	line := "192.0.2.1 [2026-11-29T18:05:09+00:00] 1795975509.000 \"GET / HTTP/1.1\" 200 4.000 192.0.2.7:80, 192.0.2.8:80 : 192.0.2.7:80 2.500, 0.500 : 1.000 502, 504 : 200\n"
	first := strings.Replace(strings.Replace(strings.Replace(line, "5509.", "5500.", 1), "4.000", "0.000", 1), "2.500, 0.500 : 1.000", "-", 1)
	d := mustRead(t, first+line+strings.Replace(line, "5509.", "5520.", 1)+strings.Replace(first, "5500.", "5521.", 1), Options{LogFormat: format, Step: time.Second})
	a, b := find(t, d, observed.Attempts, "", "host-1"), find(t, d, observed.Attempts, "", "host-2")
	at := func(s *observed.Series, second int) observed.Point { return s.Points[second] }
	if n, _ := total(a); n != "map[200:2 502:2]" {
		t.Error(n)
	}
	if n, _ := total(b); n != "map[504:2]" {
		t.Error(n)
	}
	// 5509: the last from 8 to 9, the second from 7.5 to 8, the first from 5 to 7.5
	if at(a, 7).Ended["502"].N != 1 || at(a, 5).Began != 1 || at(a, 5).Retries != 0 || at(a, 8).Retries != 1 || at(b, 8).Ended["504"].N != 1 || at(b, 7).Retries != 1 {
		t.Errorf("host-1 %+v\nhost-2 %+v", a.Points, b.Points)
	}
}

// Without durations nothing can be learnt. The error has the line that is missing in the configuration.
func TestWithoutDurations(t *testing.T) {
	line := `192.0.2.1 - - [29/Nov/2026:18:05:00 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8.5"` + "\n"
	_, err := read(t, strings.Repeat(line, 3), Options{})
	if err == nil || !strings.Contains(err.Error(), "has no durations") || !strings.Contains(err.Error(), "log_format timed '$remote_addr") || !strings.Contains(err.Error(), "$request_time") {
		t.Error(err)
	}
	_, err = read(t, line, Options{LogFormat: `$remote_addr [$time_local] $status`, Format: "nginx"})
	if err == nil || !strings.Contains(err.Error(), "has no durations") {
		t.Error(err)
	}
}

// Every mistake is counted, with the line of the first. What is right is used.
func TestProblems(t *testing.T) {
	lines := []string{
		strings.TrimSuffix(fmt.Sprintf(nginxLine, 1, 1, 100), "\n"),
		"\x00\xff\x1b[31m binary \x80",
		strings.Replace(fmt.Sprintf(nginxLine, 1, 1, 100), "29/Nov", "31/Nov", 1),
		strings.Replace(fmt.Sprintf(nginxLine, 1, 1, 100), " 200 ", " 700 ", 1),
		strings.Replace(fmt.Sprintf(nginxLine, 1, 1, 100), " 0.100", ` "x"`, 1),
		fmt.Sprintf(nginxLine, 50, 1, 100),
		fmt.Sprintf(nginxLine, 20, 1, 100),
		strings.Replace(fmt.Sprintf(nginxLine, 1, 1, 100), "2026", "2001", 1),
		strings.Repeat("x", 2<<20),
		"",
	}
	for range 98 {
		lines = append(lines, fmt.Sprintf(nginxLine, 50, 1, 100))
	}
	log := ""
	for _, l := range lines {
		log += strings.TrimSuffix(l, "\n") + "\r\n"
	}
	d := mustRead(t, log+`192.0.2.1 - - [29/Nov/2026:18:05:59 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8.5" 0.1`, Options{})
	const want = `1× line 2: the line is not one of nginx
1× line 3: time is "31/Nov/2026:18:05:01 +0000": want such as 2026-11-29T18:05:19.123Z, 29/Nov/2026:18:05:19 +0000 or seconds since 1970, from 2000 to 2099
1× line 4: status is "700": want 100 to 599, ok, timeout, refused, reset, canceled or error
1× line 5: the line has no duration, and is not used
2× line 7: the request ended more than 10 s before the one of the line before: logs were merged, or the clock was set back
1× line 9: the line is longer than 256 KiB, and is not used
1× line 109: the last line has no end, and is not used: it may be cut off
1× line 0: requests ended more than a day before or after most others, and are not used: the clock may have jumped, or the logs are of several days: choose a part of the time (from, to)`
	if got := problems(d); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n, _ := total(d.Series[0]); n != "map[200:101]" {
		t.Error(n)
	}
}

// Logs of several processes are added up. Steps that not all of them have are missing, and so are those between two logs.
func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, from, to int) string {
		var log bytes.Buffer
		for s := from; s < to; s++ {
			fmt.Fprintf(&log, strings.Replace(nginxLine, "18:05:%02d", "18:%02d:%02d", 1), s/60, s%60, 1, 10)
		}
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, ".gz") {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = z.Write(log.Bytes())
			must.Succeed(z.Close())
			log = packed
		}
		must.Succeed(os.WriteFile(path, log.Bytes(), 0o600))
		return path
	}
	d := must.Have(Read(t.Context(), []string{file("access.log.1.gz", 0, 100), file("access.log", 120, 200)}, Options{}))
	s := d.Series[0]
	if len(d.Series) != 1 || len(s.Points) != 200 || s.Points[99].Missing || !s.Points[110].Missing || s.Points[120].Missing || s.Processes != 0 {
		t.Errorf("%d series, %d points, %d processes", len(d.Series), len(s.Points), s.Processes)
	}
	must.Succeed(os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600)) // was rotated a moment ago
	d = must.Have(Read(t.Context(), []string{file("access.log", 0, 100), filepath.Join(dir, "empty")}, Options{}))
	if s = d.Series[0]; len(s.Points) != 100 || s.Points[0].Missing || s.Processes != 0 || problems(d) != "1× line 0: the source is empty" {
		t.Errorf("with an empty one: %d points, %s", len(s.Points), problems(d))
	}
	var done, all int64
	d = must.Have(Read(t.Context(), []string{file("a", 0, 100), file("b", 10, 110)}, Options{Progress: func(d, t int64) { done, all = d, t }}))
	s = d.Series[0]
	if s.Processes != 2 || !s.Points[5].Missing || s.Points[50].Ended["200"].N != 2 || !s.Points[105].Missing {
		t.Errorf("two at a time: %d processes", s.Processes)
	}
	if done == 0 || done != all {
		t.Errorf("progress: %d of %d", done, all)
	}
}

// The lines of merged logs may be in any order.
func TestOrder(t *testing.T) {
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf(strings.Replace(nginxLine, "18:05:%02d", "18:%02d:%02d", 1), i/60, i%60, i, i%100))
	}
	want := mustRead(t, strings.Join(lines, ""), Options{})
	for i := range lines {
		j := i * 7919 % len(lines)
		lines[i], lines[j] = lines[j], lines[i]
	}
	got := mustRead(t, strings.Join(lines, ""), Options{})
	if fmt.Sprintf("%+v", summary(got)) != fmt.Sprintf("%+v", summary(want)) {
		t.Error("the order of lines has changed the data")
	}
}

func summary(d *observed.Data) (all []string) {
	for _, s := range d.Series {
		for i, p := range s.Points {
			for name, b := range p.Ended {
				all = append(all, fmt.Sprint(s.Side, s.Service, s.Host, i, p.Began, p.Missing, name, b.N, b.Counts))
			}
		}
	}
	return all
}

// A day's log has longer steps than one of an hour, and the same requests.
func TestSteps(t *testing.T) {
	for _, c := range []struct{ seconds, step int }{{10, 0}, {3000, 1}, {86400, 30}} {
		var log strings.Builder
		for i := range c.seconds {
			log.WriteString(time.Unix(1795975500+int64(i), 0).UTC().Format("2006-01-02T15:04:05.000Z") + ",12,200\n")
		}
		d := mustRead(t, "time,duration_ms,status\n"+log.String(), Options{})
		s := d.Series[0]
		if want := max(time.Duration(c.step)*time.Second, 100*time.Millisecond); s.Step != want {
			t.Errorf("%d s: step %v, want %v", c.seconds, s.Step, want)
		}
		if n, _ := total(s); c.step > 0 && n != fmt.Sprintf("map[200:%d]", c.seconds) && n != fmt.Sprintf("map[200:%d]", c.seconds-1) && c.step < 30 {
			t.Error(n)
		}
	}
}

// A log of Monday and one of Thursday are not one stretch of time with steps of minutes: the one with more requests is read, and the
// other is counted.
func TestTwoDays(t *testing.T) {
	var log strings.Builder
	for day, n := range map[int]int{23: 300, 26: 600} {
		for i := range n {
			fmt.Fprintf(&log, "2026-11-%dT12:%02d:%02d.000Z,5,200\n", day, i/60, i%60)
		}
	}
	d := mustRead(t, "time,ms,status\n"+log.String(), Options{})
	s := d.Series[0]
	if n, _ := total(s); s.Step > time.Second || s.Start.Day() != 26 || len(s.Points) != 600 || n != "map[200:599]" { // the last second is not whole
		t.Errorf("%v from %v, %d points, %s", s.Step, s.Start, len(s.Points), n)
	}
	if got := problems(d); !strings.Contains(got, "300× line 0: requests ended more than a day before or after most others") {
		t.Error(got)
	}
}

// Of more hosts than there is room for, those that came first stay apart, and the others are one.
func TestManyHosts(t *testing.T) {
	var log strings.Builder
	log.WriteString("time,ms,status,upstream_host\n")
	for i := range 600 {
		fmt.Fprintf(&log, "2026-11-29T12:00:00Z,5,200,h%d\n", i%300)
	}
	d := mustRead(t, log.String(), Options{})
	if n, _ := total(find(t, d, observed.Served, "", "host-1")); n != "map[200:2]" {
		t.Error(n)
	}
	if n, _ := total(find(t, d, observed.Served, "", "")); n != "map[200:94]" {
		t.Error(n)
	}
	const want = "94× line 255: there are more than 253 services and hosts: this one and others are counted as one"
	if got := problems(d); got != want {
		t.Error(got)
	}
}
