// Package source reads what was measured of a system: access logs, CSV, and metrics. A request is counted and forgotten. Of its
// line only times, status, the name of the service, and which host it was are kept: no path, no address.
//
// A log is read once, in constant memory: requests are counted by the step in which they ended, so that lines may be in any
// order. A mistake in a line never ends the reading. It is counted in Data.Problems, whose texts may quote the source: show
// them, but store them nowhere.
//
// Logs of the same format are taken to be of alike processes, which had different requests: read those of a proxy and of the server
// behind it one at a time. Series of the same source, side and service have different hosts, and together all requests.
package source

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// Options are what the sources do not say themselves.
type Options struct {
	Format string // of all sources, one of Formats; "": each is recognised by its content
	// Fields are names of fields of JSON lines (with dots for nested ones), or columns of CSV, by what they mean: time (of the end),
	// start, duration, status, service, host, attempt (1 is the first). "unit" is that of the duration (s, ms, us, ns), "side" who
	// measured (calls, attempts, served).
	Fields    map[string]string
	LogFormat string         // log_format of nginx, log-format of HAProxy, or Envoy's text_format
	Service   string         // the name of the service; of sources with several, the one to read
	Zone      *time.Location // of times without one; nil: they are an error
	From, To  time.Time      // what ended before From, or at To or later, is left out; required for a Prometheus
	Step      time.Duration  // 0: 100 ms to an hour, by how long the sources last
	Progress  func(done, total int64)
	Stdin     io.Reader    // the source "-"
	Client    *http.Client // for a Prometheus; nil: http.DefaultClient
}

// Formats are all formats.
var Formats = []string{"nginx", "envoy", "haproxy", "alb", "json", "csv", "prometheus", "otlp"}

// noDuration is the error for a log without durations. It has what is missing in the configuration of the server.
func (r *reader) noDuration() error {
	advice := map[string]string{"nginx": "log_format timed '" + advised + "';\naccess_log /var/log/nginx/access.log timed;\n" +
		"Or say where they are: --log-format 'combined $request_time_us' is the one of Apache with %D at the end.",
		"envoy": "%DURATION% in text_format of the access log", "haproxy": "option httplog"}[r.src.Kind]
	return fmt.Errorf("the log has no durations, and without them nothing can be learnt. Write them from now on:\n%s",
		cmp.Or(advice, "a field with the duration of each request. Its name has the unit (duration_ms), or --field unit=ms"))
}

// IsPrometheus reports whether a source is the address of a Prometheus, and no file.
func IsPrometheus(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}

// Read reads all sources: paths of files, which may be compressed with gzip, "-", and addresses of Prometheus.
func Read(ctx context.Context, names []string, o Options) (*observed.Data, error) {
	if err := o.check(names); err != nil {
		return nil, err
	}
	r := &reader{Options: o, ctx: ctx, data: new(observed.Data), known: map[string]int{}, addresses: map[string]string{}, several: len(names) > 1,
		metrics: metrics{map[string]*metric{}, map[string]int64{}, map[string]string{}}}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			r.total += info.Size()
		}
	}
	for _, name := range names {
		r.name, r.line, r.src = name, 0, observed.Source{Name: name}
		read := r.readFile
		if IsPrometheus(name) {
			read = r.readAPI
		}
		if err := read(name); err != nil {
			return nil, err
		}
		if r.src.Kind != "" {
			r.data.Sources = append(r.data.Sources, r.src)
		}
	}
	r.line = 0
	own := kindOf(o.LogFormat)
	if own != "" && !slices.ContainsFunc(r.logs, func(c *collector) bool { return c.kind == own }) {
		return nil, fmt.Errorf("no source is a log of %s: want one, or no log format", own)
	}
	for _, c := range r.logs {
		r.name = c.kind
		if err := c.finish(r); err != nil {
			return nil, err
		}
	}
	r.name = "metrics"
	if err := r.metrics.finish(r); err != nil {
		return nil, err
	}
	if len(r.data.Series) == 0 {
		why := append(r.data.Problems, observed.Problem{Text: "want one of " + strings.Join(slices.Sorted(maps.Keys(rules)), ", ")})[0]
		return nil, fmt.Errorf("%s: no metric has requests: %s", strings.Join(names, ", "), why.Text)
	}
	for _, s := range r.data.Series { // a dependency of lullhttp may have the name of its host
		host, _, err := net.SplitHostPort(s.Service)
		if err != nil {
			host = s.Service
		}
		if _, err := netip.ParseAddr(host); err == nil && o.Service == "" {
			s.Service = r.nameFor(s.Service)
		}
	}
	return r.data, nil
}

func (o *Options) check(names []string) error {
	switch {
	case len(names) == 0:
		return errors.New("no source is named: want files, - or the address of a Prometheus")
	case o.Format != "" && !slices.Contains(Formats, o.Format):
		return fmt.Errorf("format is %q: want %s", o.Format, strings.Join(Formats, ", "))
	case o.Step != 0 && o.Step < 100*time.Millisecond:
		return fmt.Errorf("step is %v: want at least 100ms", o.Step)
	case !o.From.IsZero() && !o.To.IsZero() && !o.From.Before(o.To):
		return fmt.Errorf("from is %v: want a time before %v", o.From, o.To)
	}
	if strings.HasPrefix(o.LogFormat, "combined") {
		o.LogFormat = combined + `"` + o.LogFormat[len("combined"):]
	}
	if o.LogFormat != "" {
		if _, err := newLogFormat(o.LogFormat); err != nil {
			return err
		}
		if kind := kindOf(o.LogFormat); o.Format != "" && o.Format != kind {
			return fmt.Errorf("format is %q, and the log format is one of %s: want one of both", o.Format, kind)
		}
	}
	for key, value := range o.Fields {
		_, ok := fieldColumns[key]
		if _, isSide := sides[value]; !ok && !(key == "side" && isSide) && !(key == "unit" && units[value] > 0) {
			return fmt.Errorf("field %s=%s: want time, start, duration, status, service, host or attempt, unit (s, ms, us, ns) or side (calls, attempts, served)", key, value)
		}
	}
	return nil
}

// A reader reads the sources, one after the other.
type reader struct {
	Options
	ctx         context.Context
	data        *observed.Data
	known       map[string]int // problems by source and kind
	logs        []*collector
	metrics     metrics
	addresses   map[string]string // the names of services of which only the address is known
	done, total int64             // bytes
	several     bool              // sources

	// The source that is being read.
	in   io.Reader
	name string
	line int64 // its number, from 1
	src  observed.Source
}

// problem counts a mistake. Those of one kind are one Problem, which has the text of the first.
func (r *reader) problem(kind, text string) {
	key := r.name + "\x00" + kind
	i, ok := r.known[key]
	if !ok {
		i = len(r.data.Problems)
		r.known[key] = i
		r.data.Problems = append(r.data.Problems, observed.Problem{Source: r.name, Line: r.line, Text: text})
	}
	r.data.Problems[i].Count++
}

// errUnused is the error for a line that is counted as a mistake.
var errUnused = errors.New("the line is not used")

// unused counts a mistake, and returns errUnused.
func (r *reader) unused(kind, text string) error {
	r.problem(kind, text)
	return errUnused
}

// wrong is unused for a value that cannot be read.
func (r *reader) wrong(field string, value []byte, want string) error {
	if len(value) > 40 {
		value = append(value[:37:37], "..."...)
	}
	return r.unused(field+want, fmt.Sprintf("%s is %q: want %s", field, value, want))
}

// leavesOut reports whether a time, or a service that has a name, is left out.
func (r *reader) leavesOut(t time.Time, service string) bool {
	switch {
	case !r.From.IsZero() && t.Before(r.From) || !r.To.IsZero() && !t.Before(r.To):
		r.problem("outside", "what is outside of the chosen time (from, to) is left out")
	case r.Service != "" && service != "" && service != r.Service:
		r.problem("other", "other services are left out")
	default:
		return false
	}
	return true
}

// used counts a line or a sample that is used, and has a time.
func (r *reader) used(t time.Time) {
	if t = t.UTC(); r.src.Used == 0 || t.Before(r.src.From) {
		r.src.From = t
	}
	if t.After(r.src.To) {
		r.src.To = t
	}
	r.src.Used++
}

func (r *reader) readFile(name string) error {
	if r.in = r.Stdin; name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		r.in = f
	}
	text := bufio.NewReaderSize(r, longestLine)
	if head, _ := text.Peek(2); string(head) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		text = bufio.NewReaderSize(unzipped, longestLine)
	}
	if head, _ := text.Peek(3); string(head) == "\xef\xbb\xbf" { // a byte order mark
		_, _ = text.Discard(3)
	}
	head, err := text.Peek(64 << 10)
	if errors.Is(err, io.EOF) && len(head) == 0 && r.several { // such as a log that was rotated a moment ago
		r.problem("empty", "the source is empty")
		return nil
	}
	if len(head) == 0 {
		return fmt.Errorf("%s: want a log or metrics: %w", name, err)
	}
	switch r.src.Kind = cmp.Or(r.Format, r.recognise(head)); r.src.Kind {
	case "":
		return fmt.Errorf("%s: the format is not known: want one of %s, or a log format", name, strings.Join(Formats, ", "))
	case "prometheus":
		return r.readText(text)
	case "otlp":
		return r.readOTLP(bufio.NewReaderSize(text, longestOTLP))
	}
	return r.readRows(text)
}

// recognise returns the format of a source that begins with head. It looks at the first 20 lines: one that is damaged does not hide
// the others.
func (r *reader) recognise(head []byte) string {
	lines := bytes.SplitN(head, []byte("\n"), 21)
	for _, line := range lines[:min(20, len(lines))] {
		line = bytes.TrimSpace(line)
		for _, kind := range []string{"alb", "envoy", "nginx", "haproxy"} {
			if slices.ContainsFunc(r.formatsOf(kind), func(f logFormat) bool { return f.fits(line) }) {
				return kind
			}
		}
		_, _, _, isSample := parseSample(line, nil)
		switch {
		case isSample || bytes.HasPrefix(line, []byte("# TYPE ")) || bytes.HasPrefix(line, []byte("# HELP ")):
			return "prometheus"
		case bytes.HasPrefix(line, []byte("{")) && bytes.Contains(head, []byte(`"resourceMetrics"`)):
			return "otlp"
		case bytes.HasPrefix(line, []byte("{")):
			return "json"
		}
	}
	names := strings.Split(string(lines[0]), string(commaOf(lines[0])))
	if isNamed := func(n string) bool { return knownField(n) != field{} }; len(names) > 1 && (len(r.Fields) > 0 || slices.ContainsFunc(names, isNamed)) {
		return "csv"
	}
	return kindOf(r.LogFormat)
}

// Read reads the bytes of a source, and counts them.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.in.Read(p)
	if r.done += int64(n); r.Progress != nil {
		r.Progress(r.done, max(r.total, r.done))
	}
	return n, err
}

const (
	longestLine = 256 << 10
	longestOTLP = 32 << 20
	cutOff      = "the last line has no end, and is not used: it may be cut off"
)

// eachLine calls f with each line of text, until an error that is not errUnused. It counts lines that are too long, a last one
// without an end, unless it is whole, and that the text cannot be read on.
func (r *reader) eachLine(text *bufio.Reader, whole func([]byte) bool, f func([]byte) error) error {
	for tooLong := false; ; {
		line, err := text.ReadSlice('\n')
		if len(line) > 0 && !tooLong {
			r.line++
			r.src.Lines++
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				r.problem("long", fmt.Sprintf("the line is longer than %d KiB, and is not used", text.Size()>>10))
			case err != nil && (whole == nil || !whole(line)):
				r.problem("cut", cutOff)
			default:
				if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
					continue
				}
				if err := f(line); err != nil && !errors.Is(err, errUnused) {
					return fmt.Errorf("%s: line %d: %w", r.name, r.line, err)
				}
			}
		}
		switch tooLong = errors.Is(err, bufio.ErrBufferFull); {
		case err == nil || tooLong:
		case r.ctx.Err() != nil || errors.Is(err, io.EOF):
			return r.ctx.Err()
		default: // such as a compressed file that is cut off
			r.problem("broken", "the source cannot be read on: "+err.Error())
			return nil
		}
	}
}
