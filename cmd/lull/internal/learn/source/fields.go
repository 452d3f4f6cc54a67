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
)

// A column is what a value of a line means.
type column uint8

const (
	skipped column = iota
	ended
	began
	took
	status
	service
	host
	attempt
	listTook   // of nginx: a list, of the attempts at upstream servers
	listStatus // the same
	listHost   // the same
	attempts   // of lull proxy, as JSON
	flags      // of Envoy
	endedBy    // HAProxy's state at the end
	lost       // of lull proxy: lines that are missing
	door       // of lull proxy
	rest       // of nginx: all that was appended to "combined"
	columns
)

// A field says what a value means.
type field struct {
	column column
	unit   time.Duration // of the durations in the line; 0: not known by this field
	cuts   bool          // they are cut off, not rounded
	rank   int           // of several values that mean the same, the one with the lowest is used
}

// fieldColumns are the keys of Options.Fields.
var fieldColumns = map[string]column{"time": ended, "start": began, "duration": took, "status": status, "service": service, "host": host, "attempt": attempt}

// knownNames are the names of variables of log formats, of fields of JSON and of columns of CSV, in lower case unless the case matters,
// and with _ for dots and spaces. The first has the lowest rank. Some have the unit of durations behind them: their own or, by the name
// of a field that only one program has, that of the line.
var knownNames = map[column]string{
	ended: "msec time timestamp @timestamp ts date end end_time ended time_local time_iso8601 %T %Tl",
	began: "start start_time started started_at began request_creation_time %t %tr timeStamp:ms",
	took: "request_time:s seconds:s ms:ms DURATION:ms %Ta:ms %Tt:ms event_duration:ns duration elapsed took response_time responsetime " +
		"latency_human latency httprequest_latency rt req_time",
	status: "status status_code statuscode code outcome response_code:ms responsecode %ST downstreamstatus:ns elb_status_code " +
		"httprequest_status http_response_status_code res_statuscode:ms",
	skipped: "resp_headers:s",
	service: "service dependency upstream_cluster upstream_cluster_raw %b", host: "upstream_host %s", attempt: "attempt", attempts: "attempts",
	listTook: "upstream_response_time target_processing_time urt ups_rt ut", listStatus: "upstream_status target_status_code us ust",
	listHost: "upstream_addr target uaddr",
	flags:    "response_flags", endedBy: "%ts %tsc", lost: "lost_lines", door: "door", rest: "rest",
}

var units = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": 1}

var knownFields = func() map[string]field {
	all := map[string]field{}
	for c, names := range knownNames {
		for i, name := range strings.Fields(names) {
			name, unit, _ := strings.Cut(name, ":")
			all[name] = field{column: c, unit: units[unit], cuts: name == "response_code" || name == "%ST", rank: i}
			for suffix, unit := range map[string]string{"_s": "s", "_seconds": "s", "_ms": "ms", "ms": "ms", "_us": "us", "_ns": "ns"} {
				if c == took {
					all[name+suffix] = field{column: took, unit: units[unit], rank: i - 100}
				}
			}
		}
	}
	return all
}()

// knownField returns what the value called name means.
func knownField(name string) field {
	if f, ok := knownFields[name]; ok {
		return f
	}
	return knownFields[plainName(strings.ToLower(strings.TrimSpace(name)))]
}

// fieldFor returns what the field of JSON or the column of CSV called name means. Options.Fields go before what is known, and replace it.
func (r *reader) fieldFor(name string) field {
	f := knownField(name)
	for key, own := range r.Fields {
		c, ok := fieldColumns[key]
		if ok && own == name {
			return field{column: c, unit: cmp.Or(units[r.Fields["unit"]], f.unit), rank: -1000}
		}
		if c == f.column || (c == ended || c == began) && (f.column == ended || f.column == began) {
			f.column = skipped
		}
	}
	if f.column == took {
		f.unit = cmp.Or(units[r.Fields["unit"]], f.unit)
	}
	return f
}

// lacking returns what must be in a line, and is none of the fields, and which of the two texts says how it is called.
func lacking(all []field, time, code string) (what, want string) {
	has := func(c column) bool { return slices.ContainsFunc(all, func(f field) bool { return f.column == c }) }
	switch {
	case !has(ended) && !has(began):
		return "time", time
	case !has(status):
		return "status", code
	}
	return "", ""
}

// A row has the values of a line.
type row struct {
	values [columns][]byte // nil: there is none
	ranks  [columns]int
	unit   time.Duration // of took; 0: it is not known
	cuts   bool
}

func (w *row) set(f field, value []byte) {
	nothing := len(value) == 0 || string(value) == "-" && f.column != status
	if nothing || w.values[f.column] != nil && w.ranks[f.column] <= f.rank {
		return
	}
	if f.column != skipped {
		w.values[f.column], w.ranks[f.column] = value, f.rank
	}
	if f.unit != 0 && (f.column == took || w.unit == 0) {
		w.unit = f.unit
	}
	w.cuts = w.cuts || f.cuts
}

// readCSV reads comma-separated values whose first line has the names. No value goes on in the next line.
func (r *rows) readCSV(text *bufio.Reader) error {
	var buffer bytes.Buffer
	var all []field
	in := csv.NewReader(&buffer)
	in.ReuseRecord, in.TrimLeadingSpace = true, true
	return r.eachLine(text, nil, func(line []byte) error {
		if all == nil {
			in.Comma = commaOf(line)
		}
		buffer.Write(append(line, '\n'))
		record, err := in.Read()
		if all == nil {
			all, err = r.header(record, err)
			return err
		}
		if wrong := (*csv.ParseError)(nil); errors.As(err, &wrong) {
			return r.unused(wrong.Err.Error(), wrong.Err.Error())
		}
		r.row = row{}
		for i, value := range record {
			if all[i].column != skipped {
				r.set(all[i], []byte(value))
			}
		}
		return r.use()
	})
}

// commaOf returns what separates the names in the first line of CSV.
func commaOf(line []byte) rune {
	if i := bytes.IndexAny(line, ";\t"); i >= 0 && bytes.IndexByte(line, ',') < 0 {
		return rune(line[i])
	}
	return ','
}

// header returns what the columns of CSV mean.
func (r *rows) header(names []string, err error) (all []field, _ error) {
	for _, name := range names {
		all = append(all, r.fieldFor(name))
	}
	for key, name := range r.Fields {
		if _, ok := fieldColumns[key]; ok && !slices.Contains(names, name) {
			err = fmt.Errorf("there is no column %q (--field %s): want one of %s", name, key, strings.Join(names, ", "))
		}
	}
	if what, want := lacking(all, "time, start or timestamp", "status or code"); err == nil && what != "" {
		err = fmt.Errorf("no column has the %s: want %s, or --field %[1]s=NAME", what, want)
	}
	return all, err
}

// readJSON reads lines of JSON.
func (r *rows) readJSON(text *bufio.Reader) error {
	return r.eachLine(text, json.Valid, func(line []byte) error {
		r.row = row{}
		if line = bytes.Trim(line, "[], \t"); len(line) == 0 { // an array with an object in each line
			return nil
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(line, &object); err != nil {
			return r.unused("json", "the line is not an object of JSON: "+err.Error())
		}
		r.setObject("", object)
		return r.use()
	})
}

// setObject sets the values that are known. Names of nested ones have dots.
func (r *rows) setObject(path string, object map[string]json.RawMessage) {
	for name, value := range object {
		name = path + name
		f := r.fieldFor(name)
		var text string
		var nested map[string]json.RawMessage
		switch {
		case f.unit != 0 && f.column == skipped:
			r.set(f, value)
		case value[0] == '{' && strings.Count(name, ".") < 8:
			_ = json.Unmarshal(value, &nested) // it is valid: so is all around it
			r.setObject(name+".", nested)
		case f.column == skipped || string(value) == "null" || (value[0] == '[') != (f.column == attempts):
		case value[0] == '"':
			_ = json.Unmarshal(value, &text)
			r.set(f, []byte(text))
		default:
			r.set(f, value)
		}
	}
}
