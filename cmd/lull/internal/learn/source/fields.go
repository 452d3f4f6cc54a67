package source

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// fieldColumns are the keys of Options.Fields.
var fieldColumns = map[string]column{"time": ended, "start": began, "duration": took, "status": status, "service": service, "host": host, "attempt": attempt}

// A knownField is one that needs no Options.Fields.
type knownField struct {
	column column
	unit   time.Duration // of took; 0: it must be given
	rank   int           // of several fields that mean the same, the one with the lowest is used
}

// knownNames are names in lower case.
var knownNames = map[column]string{
	ended: "time timestamp @timestamp ts date end end_time ended time_local time_iso8601 msec",
	began: "start start_time started started_at began", service: "service dependency upstream_cluster", attempt: "attempt", attempts: "attempts",
	status: "status status_code code outcome response_code responsecode", host: "upstream_host", flags: "response_flags", lost: "lost_lines",
	listTook: "upstream_response_time", listStatus: "upstream_status", listHost: "upstream_addr", took: "duration elapsed took response_time latency",
}

var knownFields = func() map[string]knownField {
	all := map[string]knownField{"request_time": {took, time.Second, -1}, "seconds": {took, time.Second, -1}, "ms": {took, time.Millisecond, -1}}
	for c, names := range knownNames {
		for i, name := range strings.Fields(names) {
			all[name] = knownField{column: c, rank: i}
			for suffix, unit := range map[string]time.Duration{"_s": time.Second, "_seconds": time.Second, "_ms": time.Millisecond, "_us": time.Microsecond, "_ns": 1} {
				if c == took {
					all[name+suffix] = knownField{took, unit, i - 100}
				}
			}
		}
	}
	return all
}()

// fieldFor returns what the field called name means. Options.Fields go before what is known, and replace it.
func (r *rows) fieldFor(name string) knownField {
	f := knownFields[strings.ToLower(name)]
	for key, own := range r.Fields {
		c, ok := fieldColumns[key]
		if ok && own == name {
			return knownField{c, f.unit, -1000}
		}
		if c == f.column || (c == ended || c == began) && (f.column == ended || f.column == began) {
			f.column = skipped
		}
	}
	if name == "timeStamp" { // of JMeter
		f.column = began
	}
	return f
}

// set sets a field of the row.
func (r *rows) set(f knownField, value []byte) {
	if r.fields[f.column] != nil && r.ranks[f.column] < f.rank {
		return
	}
	r.fields[f.column], r.ranks[f.column] = value, f.rank
	if f.column == took {
		r.unit = cmp.Or(units[r.Fields["unit"]], f.unit, r.unit)
	}
	if f.column == attempt {
		r.c.numbered = true
		if r.Fields["side"] == "" {
			r.side = observed.Attempts
		}
	}
}

// readCSV reads comma-separated values whose first line has the names. No value goes on in the next line.
func (r *rows) readCSV(text *bufio.Reader) error {
	var buffer bytes.Buffer
	var all []knownField
	in, unit := csv.NewReader(&buffer), r.unit
	in.ReuseRecord, in.TrimLeadingSpace = true, true
	return r.eachLine(text, nil, func(line []byte) error {
		buffer.Write(append(line, '\n'))
		record, err := in.Read()
		if all == nil {
			if slices.Contains(record, "timeStamp") { // JMeter's times are milliseconds
				unit = cmp.Or(unit, time.Millisecond)
			}
			all, err = r.header(record, err)
			return err
		}
		if wrong := (*csv.ParseError)(nil); errors.As(err, &wrong) {
			r.problem(wrong.Err.Error(), wrong.Err.Error())
			return nil
		}
		r.fields, r.unit = [columns][]byte{}, unit
		for i, value := range record {
			if all[i].column != skipped && value != "" {
				r.set(all[i], []byte(value))
			}
		}
		return r.use()
	})
}

// header returns what the columns of CSV mean.
func (r *rows) header(names []string, err error) (all []knownField, _ error) {
	for _, name := range names {
		all = append(all, r.fieldFor(name))
	}
	has := func(c column) bool { return slices.ContainsFunc(all, func(f knownField) bool { return f.column == c }) }
	for key, name := range r.Fields {
		if c, ok := fieldColumns[key]; ok && !has(c) {
			err = fmt.Errorf("there is no column %q (field %s): want one of %s", name, key, strings.Join(names, ", "))
		}
	}
	switch {
	case err != nil:
	case !has(ended) && !has(began):
		err = errors.New("no column has the time: want time, start or timestamp, or the field time or start with the name of the column")
	case !has(status):
		err = errors.New("no column has the status: want status or code, or the field status with the name of the column")
	case !has(took) && !(has(ended) && has(began)):
		return nil, &NoDuration{Source: r.name, Line: adviceFor("csv")}
	default:
		return all, nil
	}
	return nil, fmt.Errorf("%s: line %d: %w", r.name, r.line, err)
}

func isKnown(name string) bool {
	_, ok := knownFields[strings.ToLower(strings.TrimSpace(name))]
	return ok
}

// readJSON reads lines of JSON.
func (r *rows) readJSON(text *bufio.Reader) error {
	unit := r.unit
	known := map[string]knownField{}
	return r.eachLine(text, json.Valid, func(line []byte) error {
		r.fields, r.unit = [columns][]byte{}, unit
		var object map[string]json.RawMessage
		if err := json.Unmarshal(line, &object); err != nil {
			r.problem("json", "the line is not an object of JSON: "+err.Error())
			return nil
		}
		switch {
		case object["response_code"] != nil: // Envoy's durations are whole milliseconds
			r.unit, r.c.cuts = cmp.Or(unit, time.Millisecond), true
		case object["resp_headers"] != nil: // Caddy's are seconds
			r.unit = cmp.Or(unit, time.Second)
		}
		r.setObject("", object, known)
		if object["seconds"] != nil && object["bytes_in"] != nil { // lull proxy's time is that of the beginning
			r.fields[began], r.fields[ended] = r.fields[ended], nil
			if r.fields[status] == nil { // there was no answer
				r.fields[status] = []byte("error")
			}
			if r.Fields["side"] == "" {
				r.side = observed.Calls
			}
		}
		return r.use()
	})
}

// setObject sets the fields that are known. Names of nested ones have dots.
func (r *rows) setObject(path string, object map[string]json.RawMessage, known map[string]knownField) {
	for name, value := range object {
		name = path + name
		f, ok := known[name]
		if !ok {
			if f = r.fieldFor(name); len(known) < 1000 {
				known[name] = f
			}
		}
		var text string
		var nested map[string]json.RawMessage
		switch {
		case value[0] == '{' && strings.Count(name, ".") < 8:
			if json.Unmarshal(value, &nested) == nil {
				r.setObject(name+".", nested, known)
			}
		case f.column == skipped || string(value) == "null" || (value[0] == '[') != (f.column == attempts):
		case value[0] == '"':
			if json.Unmarshal(value, &text) == nil {
				r.set(f, []byte(text))
			}
		default:
			r.set(f, value)
		}
	}
}

// useAttempts counts the attempts of a line of lull proxy's access log.
func (r *rows) useAttempts(q *request, name []byte) {
	if r.fields[attempts] == nil {
		return
	}
	var all []struct {
		Code            string
		Seconds, Waited float64
	}
	err := json.Unmarshal(r.fields[attempts], &all)
	a := *q
	a.ended = a.ended.Add(-q.took)
	for i, one := range all {
		if err != nil || one.Seconds < 0 || one.Seconds > 1e6 || one.Waited < 0 || one.Waited > 1e6 {
			r.wrong("attempts", r.fields[attempts], "a list of code, seconds and waited (0 to 1000000)")
			return
		}
		a.took, a.retry, a.precision = time.Duration(one.Seconds*1e9), i > 0, time.Microsecond
		a.ended = a.ended.Add(a.took)
		var ok bool
		if a.outcome, ok = outcomeOf([]byte(cmp.Or(one.Code, "ok"))); !ok {
			a.outcome = failed
		}
		r.c.numbered = true
		r.add(observed.Attempts, name, nil, &a)
		a.ended = a.ended.Add(time.Duration(one.Waited * 1e9))
	}
}
