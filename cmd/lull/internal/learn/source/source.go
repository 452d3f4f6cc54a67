// Package source reads what was measured of a system: access logs, CSV, and metrics. A request is counted and forgotten. Of its
// line only times, status, the name of the service, and which host it was are kept: no path, no address.
//
// A log is read once, in constant memory: requests are counted by the step in which they ended, so that lines may be in any
// order. A mistake in a line never ends the reading. It is counted in Data.Problems, whose texts may quote the source: show
// them, but store them nowhere.
package source

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
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
	From, To  time.Time      // what ended before From, or at To or later, is left out
	Step      time.Duration  // 0: 1 s to an hour, by how long the sources last
	Progress  func(done, total int64)
	Stdin     io.Reader // nil: os.Stdin
}

// Formats are all formats.
var Formats = []string{"nginx", "envoy", "haproxy", "alb", "json", "csv", "prometheus", "otlp"}

// NoDuration is the error for a log without durations.
type NoDuration struct {
	Source string
	Line   string // what to write into the configuration of the server
}

func (e *NoDuration) Error() string {
	return fmt.Sprintf("%s has no durations, and without them nothing can be learnt of the service. Write them from now on:\n%s", e.Source, e.Line)
}

// Read reads all sources: paths of files, which may be compressed with gzip, "-", and addresses of Prometheus.
func Read(ctx context.Context, names []string, o Options) (*observed.Data, error) {
	if err := o.check(names); err != nil {
		return nil, err
	}
	r := &reader{Options: o, ctx: ctx, data: new(observed.Data), known: map[string]int{}, logs: map[string]*collector{}, metrics: map[string]*metrics{}, addresses: map[string]string{}}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			r.total += info.Size()
		}
	}
	for _, name := range names {
		if err := r.read(name); err != nil {
			return nil, err
		}
	}
	for _, kind := range r.kinds {
		if m := r.metrics[kind]; m != nil {
			if err := m.finish(r); err != nil {
				return nil, err
			}
		} else if err := r.logs[kind].finish(r); err != nil {
			return nil, err
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
	for key, value := range o.Fields {
		if _, ok := fieldRoles[key]; !ok && key != "unit" && key != "side" {
			return fmt.Errorf("field %q: want time, start, duration, status, service, host, attempt, unit or side", key)
		}
		if _, ok := units[value]; key == "unit" && !ok {
			return fmt.Errorf("unit is %q: want s, ms, us or ns", value)
		}
		if _, ok := sides[value]; key == "side" && !ok {
			return fmt.Errorf("side is %q: want calls, attempts or served", value)
		}
	}
	return nil
}

var sides = map[string]observed.Side{"calls": observed.Calls, "attempts": observed.Attempts, "served": observed.Served}

// A reader reads the sources, one after the other.
type reader struct {
	Options
	ctx         context.Context
	data        *observed.Data
	known       map[string]int // problems by source and kind
	kinds       []string       // of logs and metrics, in the order in which they came
	logs        map[string]*collector
	metrics     map[string]*metrics
	addresses   map[string]string // the names of services that are known by their address
	done, total int64

	// The source that is being read.
	name string
	line int64 // the number of the line, from 1
	src  observed.Source
}

// problem counts a mistake. Mistakes with the same kind are one Problem, which has the text of the first.
func (r *reader) problem(line int64, kind, text string) {
	key := r.name + "\x00" + kind
	i, ok := r.known[key]
	if !ok {
		i = len(r.data.Problems)
		r.known[key] = i
		r.data.Problems = append(r.data.Problems, observed.Problem{Source: r.name, Line: line, Text: text})
	}
	r.data.Problems[i].Count++
}

// wrong counts a field that cannot be read.
func (r *reader) wrong(field string, value []byte, want string) {
	if _, ok := r.known[r.name+"\x00"+field+want]; ok { // no allocation for the text
		r.problem(r.line, field+want, "")
		return
	}
	if len(value) > 40 {
		value = append(value[:37:37], "..."...)
	}
	r.problem(r.line, field+want, fmt.Sprintf("%s is %q: want %s", field, value, want))
}

func (r *reader) note(text string) {
	if !strings.Contains(r.src.Notes, text) {
		r.src.Notes = strings.TrimPrefix(r.src.Notes+"; "+text, "; ")
	}
}

func (r *reader) read(name string) error {
	r.name, r.line, r.src = name, 0, observed.Source{Name: name}
	var err error
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		err = r.readAPI(name)
	} else {
		err = r.readFile(name)
	}
	if err != nil {
		return err
	}
	r.data.Sources = append(r.data.Sources, r.src)
	return nil
}

func (r *reader) readFile(name string) error {
	var in io.Reader = cmp.Or[io.Reader](r.Stdin, os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	raw := &counter{r: r, in: in, hash: sha256.New()}
	text := bufio.NewReaderSize(raw, 1<<20)
	if head, _ := text.Peek(2); string(head) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		text = bufio.NewReaderSize(unzipped, 1<<20)
	}
	head, err := text.Peek(64 << 10)
	if len(head) == 0 {
		return fmt.Errorf("%s: is empty: want a log or metrics%s", name, unless(err))
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) { // a byte order mark
		_, _ = text.Discard(3)
		head = head[3:]
	}
	kind := r.Format
	if kind == "" {
		if kind = r.recognise(head); kind == "" {
			return fmt.Errorf("%s: the format is not known: want one of %s, or a log format", name, strings.Join(Formats, ", "))
		}
	}
	r.src.Kind = kind
	if err := r.parse(kind, head, text); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, raw); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.src.Sha256 = hex.EncodeToString(raw.hash.Sum(nil))
	return nil
}

func unless(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return ""
	}
	return " (" + err.Error() + ")"
}

func (r *reader) parse(kind string, head []byte, text *bufio.Reader) error {
	switch kind {
	case "prometheus":
		return r.readText(text)
	case "otlp":
		return r.readOTLP(text)
	}
	rows, err := r.newRows(kind)
	if err != nil {
		return err
	}
	switch kind {
	case "json":
		err = rows.readJSON(text)
	case "csv":
		err = rows.readCSV(text)
	default:
		err = rows.readLines(text, kind, head)
	}
	if err != nil {
		return err
	}
	return rows.end()
}

// recognise returns the format of a source that begins with head. It looks at the first 20 lines: one that was cut off or is
// damaged does not hide the others.
func (r *reader) recognise(head []byte) string {
	switch format := r.LogFormat; {
	case format == "":
	case strings.Contains(format, "$"):
		return "nginx"
	case strings.Contains(format, "%DURATION%") || strings.Contains(format, "%START_TIME"):
		return "envoy"
	default:
		return "haproxy"
	}
	if trimmed := bytes.TrimLeft(head, " \t\r\n"); bytes.HasPrefix(trimmed, []byte("{")) && bytes.Contains(head, []byte(`"resourceMetrics"`)) {
		return "otlp"
	}
	first := ""
	for i, line := range bytes.SplitN(head, []byte("\n"), 21) {
		line = bytes.TrimRight(line, "\r")
		if i == 20 || len(line) == 0 {
			continue
		}
		if first == "" {
			first = string(line)
		}
		if kind := recogniseLine(line); kind != "" {
			return kind
		}
	}
	if strings.Contains(first, ",") && (r.Fields != nil || csvHeader(first)) {
		return "csv"
	}
	return ""
}

func recogniseLine(line []byte) string {
	var fields [columns][]byte
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return bytes.HasPrefix(line, []byte(p)) })
	}
	switch {
	case has("{"):
		return "json"
	case has("# HELP ", "# TYPE ", "# UNIT ", "# EOF"):
		return "prometheus"
	case has("http ", "https ", "h2 ", "grpcs ", "ws ", "wss ") && albFormat.split(line, &fields):
		return "alb"
	case has("[20") && envoyFormat.split(line, &fields):
		return "envoy"
	case combinedFormat.split(line, &fields) && len(fields[status]) == 3 && isDigits(fields[status]):
		return "nginx"
	case haproxyFormat.split(afterSyslog(line), &fields) && fields[endedBy] != nil && len(fields[endedBy]) == 4:
		return "haproxy"
	}
	if _, _, _, ok := parseSample(line, nil); ok {
		return "prometheus"
	}
	return ""
}

// A counter counts and hashes what is read, for reader.
type counter struct {
	r    *reader
	in   io.Reader
	hash hash.Hash
}

func (c *counter) Read(p []byte) (int, error) {
	if err := c.r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.in.Read(p)
	c.hash.Write(p[:n])
	c.r.done += int64(n)
	if c.r.Progress != nil {
		c.r.Progress(c.r.done, max(c.r.total, c.r.done))
	}
	return n, err
}

const cutOff = "the last line has no end, and is not used: it may be cut off"

// eachLine calls f with each line of text, without its end. A line that is too long is counted; so is a last one without an end if
// whole does not report that it is whole, and a file that breaks off.
func (r *reader) eachLine(text *bufio.Reader, whole func([]byte) bool, f func([]byte) error) error {
	for tooLong := false; ; {
		line, err := text.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if !tooLong {
				r.line++
				r.problem(r.line, "long", "the line is longer than 1 MiB, and is not used")
			}
			tooLong = true
			continue
		}
		if tooLong {
			tooLong = false
			if err == nil {
				continue
			}
			line = nil
		}
		if len(line) > 0 {
			r.line++
			r.src.Lines++
			if err != nil && !whole(line) {
				r.problem(r.line, "cut", cutOff)
			} else if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
				if err := f(line); err != nil {
					return err
				}
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
			r.problem(r.line, "broken", "the compressed file is damaged here, and what follows is not used: "+err.Error())
			return nil
		case r.ctx.Err() != nil:
			return r.ctx.Err()
		default: // such as flate.CorruptInputError
			r.problem(r.line, "broken", "the source cannot be read on: "+err.Error())
			return nil
		}
	}
}
