package source

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// fieldRoles are the keys of Options.Fields.
var fieldRoles = map[string]column{"time": ended, "start": began, "duration": took, "status": status, "service": service, "host": host, "attempt": attempt}

// A known field is one that needs no Options.Fields.
type knownField struct {
	column column
	unit   time.Duration // of took; 0: it must be given
}

// knownFields are names in lower case.
var knownFields = map[string]knownField{
	"time": {ended, 0}, "timestamp": {ended, 0}, "@timestamp": {ended, 0}, "ts": {ended, 0}, "date": {ended, 0}, "end": {ended, 0}, "end_time": {ended, 0},
	"ended": {ended, 0}, "time_local": {ended, 0}, "time_iso8601": {ended, 0}, "msec": {ended, 0},
	"start": {began, 0}, "start_time": {began, 0}, "started": {began, 0}, "started_at": {began, 0}, "began": {began, 0},
	"status": {status, 0}, "status_code": {status, 0}, "code": {status, 0}, "outcome": {status, 0}, "response_code": {status, 0}, "responsecode": {status, 0},
	"response_flags": {flags, 0}, "service": {service, 0}, "dependency": {service, 0}, "upstream_cluster": {service, 0}, "upstream_host": {host, 0},
	"attempt": {attempt, 0}, "attempts": {attempts, 0}, "lost_lines": {lost, 0},
	"upstream_response_time": {attemptsTook, 0}, "upstream_status": {attemptsStatus, 0}, "upstream_addr": {attemptsHost, 0},
	"duration": {took, 0}, "latency": {took, 0}, "elapsed": {took, 0}, "took": {took, 0}, "response_time": {took, 0},
	"request_time": {took, time.Second}, "seconds": {took, time.Second}, "duration_s": {took, time.Second}, "duration_seconds": {took, time.Second},
	"latency_s": {took, time.Second}, "latency_seconds": {took, time.Second}, "ms": {took, time.Millisecond}, "duration_ms": {took, time.Millisecond},
	"latency_ms": {took, time.Millisecond}, "elapsed_ms": {took, time.Millisecond}, "took_ms": {took, time.Millisecond}, "response_time_ms": {took, time.Millisecond},
	"duration_us": {took, time.Microsecond}, "latency_us": {took, time.Microsecond}, "duration_ns": {took, 1}, "latency_ns": {took, 1},
}

// fieldFor returns what the field called name means. Options.Fields go before what is known, and if they have a time, a known one is
// not used.
func (r *rows) fieldFor(name string) knownField {
	for key, own := range r.Fields {
		if c, ok := fieldRoles[key]; ok && own == name {
			unit := knownFields[strings.ToLower(name)].unit
			return knownField{c, unit}
		}
	}
	f := knownFields[strings.ToLower(name)]
	for key := range r.Fields {
		if c := fieldRoles[key]; c == f.column || (c == ended || c == began) && (f.column == ended || f.column == began) {
			return knownField{}
		}
	}
	if name == "timeStamp" { // of JMeter
		f.column = began
	}
	return f
}

// readCSV reads comma-separated values whose first line has the names.
func (r *rows) readCSV(text *bufio.Reader) error {
	cut := &endReader{in: text}
	in := csv.NewReader(cut)
	in.ReuseRecord, in.TrimLeadingSpace = true, true
	names, err := in.Read()
	if err != nil {
		return fmt.Errorf("%s: line 1: want a line with the names of the columns: %w", r.name, err)
	}
	all := make([]knownField, len(names))
	has := map[column]bool{}
	jmeter := false
	for i, name := range names {
		all[i] = r.fieldFor(name)
		has[all[i].column] = true
		jmeter = jmeter || name == "timeStamp"
	}
	for key, name := range r.Fields {
		if c, ok := fieldRoles[key]; ok && !has[c] {
			return fmt.Errorf("%s: line 1: there is no column %q (field %s): want one of %s", r.name, name, key, strings.Join(names, ", "))
		}
	}
	if !has[ended] && !has[began] {
		return fmt.Errorf("%s: line 1: no column has the time: want time, start, timestamp, or the name of the column in the field time or start", r.name)
	}
	if !has[took] && !(has[ended] && has[began]) {
		return &NoDuration{Source: r.name, Line: adviceFor("csv")}
	}
	if !has[status] {
		return fmt.Errorf("%s: line 1: no column has the status: want status, code, or the name of the column in the field status", r.name)
	}
	unit := r.unit
	if jmeter {
		unit = time.Millisecond
	}
	r.c.numbered = r.c.numbered || has[attempt]
	if has[attempt] && r.Fields["side"] == "" {
		r.side = observed.Attempts
	}
	r.line, r.src.Lines = 1, 1
	for waiting := false; ; {
		record, err := in.Read()
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if waiting && cut.cut && err != nil {
			r.problem(r.line, "cut", cutOff)
		} else if waiting {
			if err := r.use(); err != nil {
				return err
			}
		}
		waiting = false
		if errors.Is(err, io.EOF) {
			return nil
		}
		r.src.Lines++
		if wrong := (*csv.ParseError)(nil); errors.As(err, &wrong) {
			r.line = int64(wrong.StartLine)
			r.problem(r.line, wrong.Err.Error(), wrong.Err.Error())
			continue
		} else if err != nil {
			r.problem(r.line, "broken", "the source cannot be read on: "+err.Error())
			return nil
		}
		line, _ := in.FieldPos(0)
		r.line, waiting = int64(line), true
		r.fields, r.unit = [columns][]byte{}, unit
		for i, value := range record {
			if f := all[i]; f.column != skipped && value != "" {
				r.fields[f.column] = []byte(value)
				if f.column == took && f.unit != 0 && r.Fields["unit"] == "" {
					r.unit = f.unit
				}
			}
		}
	}
}

// An endReader remembers whether the text ended without the end of a line.
type endReader struct {
	in  io.Reader
	cut bool
}

func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	if n > 0 {
		e.cut = p[n-1] != '\n'
	}
	return n, err
}

func csvHeader(line string) bool {
	names, err := csv.NewReader(strings.NewReader(line)).Read()
	known := 0
	for _, name := range names {
		if _, ok := knownFields[strings.ToLower(strings.TrimSpace(name))]; ok {
			known++
		}
	}
	return err == nil && known >= 2
}

// readJSON reads lines of JSON.
func (r *rows) readJSON(text *bufio.Reader) error {
	unit := r.unit
	w := jsonWalk{rows: r, known: map[string]knownField{}}
	return r.eachLine(text, json.Valid, func(line []byte) error {
		r.fields, r.unit = [columns][]byte{}, unit
		w.text, w.path, w.is = line, w.path[:0], 0
		if w.space(); !w.object(0) || len(w.text) > 0 {
			r.problem(r.line, "json", "the line is not an object of JSON")
			return nil
		}
		switch {
		case r.Fields["unit"] != "":
			r.unit = unit
		case r.unit != 0:
		case w.is&isEnvoy != 0:
			r.unit = time.Millisecond
		case w.is&isCaddy != 0:
			r.unit = time.Second
		}
		if w.is&isLull == isLull { // its time is that of the beginning
			r.side = observed.Calls
			r.fields[began], r.fields[ended] = r.fields[ended], nil
		}
		return r.use()
	})
}

// A jsonWalk goes through an object of JSON, and finds fields. It is as strict as it must be to find them; it allocates nothing.
type jsonWalk struct {
	*rows
	text  []byte
	path  []byte // names of the objects around, each with a dot after it
	known map[string]knownField
	is    int
}

// Fields by which a log is known.
const (
	isEnvoy = 1 << iota
	isCaddy
	hasSeconds
	hasBytesIn
	isLull = hasSeconds | hasBytesIn
)

var signs = map[string]int{"response_code": isEnvoy, "resp_headers": isCaddy, "seconds": hasSeconds, "bytes_in": hasBytesIn}

func (w *jsonWalk) space() { w.text = bytes.TrimLeft(w.text, " \t\r\n") }

// next removes c and the space after it.
func (w *jsonWalk) next(c byte) bool {
	if len(w.text) == 0 || w.text[0] != c {
		return false
	}
	w.text = w.text[1:]
	w.space()
	return true
}

func (w *jsonWalk) object(depth int) bool {
	if !w.next('{') {
		return false
	}
	if w.next('}') {
		return true
	}
	for {
		key, ok := w.string()
		if !ok || !w.next(':') {
			return false
		}
		w.is |= signs[string(key)]
		length := len(w.path)
		w.path = append(w.path, key...)
		if !w.value(depth) {
			return false
		}
		w.path = w.path[:length]
		if w.next('}') {
			return true
		}
		if !w.next(',') {
			return false
		}
	}
}

// value reads the value of the field at path.
func (w *jsonWalk) value(depth int) bool {
	if len(w.text) == 0 || depth > 20 {
		return false
	}
	switch w.text[0] {
	case '{':
		length := len(w.path)
		w.path = append(w.path, '.')
		ok := w.object(depth + 1)
		w.path = w.path[:length]
		return ok
	case '[':
		begin := w.text
		if !w.array() {
			return false
		}
		if f := w.field(); f.column == attempts {
			w.fields[attempts] = begin[:len(begin)-len(w.text)]
		}
		return true
	}
	value, ok := w.scalar()
	f := w.field()
	if !ok || f.column == skipped || f.column == attempts || string(value) == "null" {
		return ok
	}
	w.fields[f.column] = value
	if f.column == took {
		w.unit = cmp.Or(f.unit, w.unit)
	}
	if f.column == attempt {
		w.c.numbered = true
		if w.Fields["side"] == "" {
			w.side = observed.Attempts
		}
	}
	return true
}

func (w *jsonWalk) field() knownField {
	f, ok := w.known[string(w.path)]
	if !ok {
		f = w.fieldFor(string(w.path))
		if len(w.known) < 1000 {
			w.known[string(w.path)] = f
		}
	}
	return f
}

// array passes over an array.
func (w *jsonWalk) array() bool {
	for level := 0; len(w.text) > 0; {
		switch w.text[0] {
		case '[', '{':
			level++
			w.text = w.text[1:]
		case ']', '}':
			level--
			w.text = w.text[1:]
		case '"':
			if _, ok := w.string(); !ok {
				return false
			}
		default:
			w.text = w.text[1:]
		}
		if level == 0 {
			w.space()
			return true
		}
	}
	return false
}

func (w *jsonWalk) scalar() ([]byte, bool) {
	if w.text[0] == '"' {
		return w.string()
	}
	end := bytes.IndexAny(w.text, ",}] \t")
	if end <= 0 {
		return nil, false
	}
	value := w.text[:end]
	w.text = w.text[end:]
	w.space()
	return value, true
}

func (w *jsonWalk) string() ([]byte, bool) {
	if len(w.text) == 0 || w.text[0] != '"' {
		return nil, false
	}
	for i := 1; i < len(w.text); i++ {
		switch w.text[i] {
		case '\\':
			i++
		case '"':
			value := w.text[1:i]
			if bytes.IndexByte(value, '\\') >= 0 {
				var s string
				if json.Unmarshal(w.text[:i+1], &s) != nil {
					return nil, false
				}
				value = []byte(s)
			}
			w.text = w.text[i+1:]
			w.space()
			return value, true
		}
	}
	return nil, false
}

// useAttempts counts the attempts of a line of lull proxy's access log.
func (r *rows) useAttempts(q *request, name []byte) {
	var all []struct {
		Code            string
		Seconds, Waited float64
	}
	if err := json.Unmarshal(r.fields[attempts], &all); err != nil {
		r.wrong("attempts", r.fields[attempts], "a list of code, seconds and waited")
		return
	}
	a := *q
	a.ended -= q.took
	for i, one := range all {
		if !(one.Seconds >= 0 && one.Seconds < 1e6 && one.Waited >= 0 && one.Waited < 1e6) {
			r.wrong("attempts", r.fields[attempts], "seconds and waited from 0 to 1000000")
			return
		}
		a.took, a.retry, a.precision = int64(one.Seconds*1e9), i > 0, time.Microsecond
		a.ended += a.took
		var ok bool
		if a.outcome, ok = outcomeOf([]byte(cmp.Or(one.Code, "ok"))); !ok {
			a.outcome = outcomeError
		}
		a.series = r.seriesOf(observed.Attempts, name, nil)
		r.c.numbered = true
		r.c.add(&a)
		a.ended += int64(one.Waited * 1e9)
	}
}
