package source

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A logFormat is the way in which a server writes lines.
type logFormat []piece

// A piece is text that stands in each line, and the field after it.
type piece struct {
	before []byte
	column column
}

// What follows the last field of these formats is not read.
const (
	combined  = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent`
	advised   = combined + `" $msec $request_time "$upstream_addr" "$upstream_response_time" "$upstream_status"`
	envoyHead = `[%START_TIME%] "%REQ(:METHOD)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% `
	envoyTail = `%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" ` +
		`"%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"`
	istioMiddle = `%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" `
)

// logFormats are those that are recognised.
var logFormats = map[string][]logFormat{
	"nginx":   {mustFormat(combined + `"$rest`), mustFormat(advised)},
	"envoy":   {mustFormat(envoyHead + envoyTail), mustFormat(envoyHead + istioMiddle + envoyTail + ` %UPSTREAM_CLUSTER% `)},
	"haproxy": {mustFormat(`%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/`)},
	"alb": {mustFormat(`$type $time $elb $client $target $request_processing_time $target_processing_time $response_processing_time $elb_status_code $target_status_code ` +
		`$received_bytes $sent_bytes "$request" "$user_agent" $ssl_cipher $ssl_protocol $target_group_arn "$trace_id" "$domain_name" "$chosen_cert_arn" ` +
		`$matched_rule_priority $request_creation_time `)},
}

// columnOf has the variables of all log formats.
var columnOf = map[string]column{
	"time_local": ended, "time_iso8601": ended, "msec": ended, "status": status, "request_time": took,
	"upstream_response_time": listTook, "upstream_status": listStatus, "upstream_addr": listHost, "rest": rest,
	"START_TIME": began, "RESPONSE_CODE": status, "RESPONSE_FLAGS": flags, "DURATION": took, "UPSTREAM_CLUSTER": service, "UPSTREAM_CLUSTER_RAW": service, "UPSTREAM_HOST": host,
	"tr": began, "t": began, "T": ended, "Tl": ended, "Ta": took, "Tt": took, "ST": status, "ts": endedBy, "tsc": endedBy, "b": service, "s": host,
	"time": ended, "request_creation_time": began, "elb_status_code": status, "target": listHost, "target_processing_time": listTook, "target_status_code": listStatus,
}

// A variable is $name or ${name} of nginx, %NAME%, %NAME(X):9% of Envoy, or %name, %{+Q}name, %[expression] of HAProxy.
var (
	variable = regexp.MustCompile(`\$\{?(\w+)\}?|%(?:\{[^}]*\})?(?:\[[^\]]*\]|(\w+)(?:\([^)]*\)(?::\d+)?)?%?)`)
	quoted   = regexp.MustCompile(`%\{[^}]*\+Q[^}]*\}(\w+|\[[^\]]*\])`)
)

func mustFormat(format string) logFormat {
	f, err := newLogFormat(format)
	if err != nil {
		panic(err)
	}
	return f
}

func newLogFormat(format string) (all logFormat, err error) {
	format = quoted.ReplaceAllString(format, `"%$1"`)
	end, precise := 0, -1 // the place of $msec: other times are not needed
	for _, at := range variable.FindAllStringSubmatchIndex(format, -1) {
		name := ""
		for i := 2; i < len(at); i += 2 {
			if at[i] >= 0 {
				name = format[at[i]:at[i+1]]
			}
		}
		if end == at[0] && end > 0 {
			return nil, fmt.Errorf("log format: nothing separates %s from what stands before it: want a space or a quote", format[at[0]:at[1]])
		}
		if name == "msec" {
			precise = len(all)
		}
		all = append(all, piece{[]byte(format[end:at[0]]), columnOf[name]})
		end = at[1]
	}
	for i := range all {
		if all[i].column == ended && precise >= 0 && i != precise {
			all[i].column = skipped
		}
	}
	switch {
	case !all.has(ended) && !all.has(began):
		err = fmt.Errorf("log format %q has no time: want $msec, $time_iso8601, $time_local, %%START_TIME%% or %%tr", format)
	case !all.has(status):
		err = fmt.Errorf("log format %q has no status: want $status, %%RESPONSE_CODE%% or %%ST", format)
	}
	return append(all, piece{before: []byte(format[end:])}), err
}

// kindOf returns whose log format it is.
func kindOf(format string) string {
	switch {
	case format == "":
		return ""
	case strings.Contains(format, "$"):
		return "nginx"
	case strings.Contains(format, "%DURATION%") || strings.Contains(format, "%START_TIME"):
		return "envoy"
	}
	return "haproxy"
}

func (f logFormat) has(c column) bool {
	return slices.ContainsFunc(f, func(p piece) bool { return p.column == c })
}

// split finds the fields of line, and reports whether all are there.
func (f logFormat) split(line []byte, fields *[columns][]byte) bool {
	if !bytes.HasPrefix(line, f[0].before) {
		return false
	}
	line = line[len(f[0].before):]
	for i, p := range f[:len(f)-1] {
		next := f[i+1].before
		end := len(line)
		if len(next) > 0 {
			end = bytes.Index(line, next)
			for p.column >= listTook && p.column <= listHost && next[0] == ' ' && end > 0 && (line[end-1] == ',' || line[end-1] == ':' || bytes.HasPrefix(line[end:], []byte(" : "))) {
				more := bytes.Index(line[end+1:], next) // the space is one within the list
				if end += 1 + more; more < 0 {
					end = -1
				}
			}
			if end < 0 {
				return false
			}
		}
		if p.column != skipped {
			fields[p.column] = line[:end]
		}
		line = line[end+min(len(next), len(line)-end):]
	}
	return true
}

// fits reports whether line may have the format.
func (f logFormat) fits(line []byte) bool {
	var fields [columns][]byte
	found := f.split(afterSyslog(line), &fields)
	at := bytes.TrimLeft(slices.Concat(fields[ended], fields[began]), "[")
	_, ok := outcomeOf(fields[status])
	return found && ok && len(at) > 8 && isDigits(at[:2])
}

// readLines reads a log with a format of its own.
func (r *rows) readLines(text *bufio.Reader) error {
	kind := r.c.kind
	formats, want := logFormats[kind], "the line is not one of "+kind
	if kindOf(r.LogFormat) == kind {
		f, _ := newLogFormat(r.LogFormat)
		if !f.has(took) && !(f.has(ended) && f.has(began)) {
			return &NoDuration{Source: r.name, Line: adviceFor(kind)}
		}
		formats, want = []logFormat{f}, want+" in the log format"
	}
	if r.unit = time.Second; kind == "envoy" || kind == "haproxy" {
		r.unit, r.c.cuts = time.Millisecond, true
	}
	return r.eachLine(text, nil, func(line []byte) error {
		if kind == "haproxy" {
			line = afterSyslog(line)
		}
		for i := len(formats) - 1; i >= 0; i-- { // the longest first: of a shorter line it has no sense
			r.fields = [columns][]byte{}
			if formats[i].split(line, &r.fields) && (len(formats) == 1 || len(r.fields[took]) == 0 || r.fields[took][0] != '"') {
				return r.use()
			}
		}
		r.problem("format", want)
		return nil
	})
}

// afterSyslog returns the line without what syslog writes before it: "Nov 29 18:05:19 host haproxy[123]: ".
func afterSyslog(line []byte) []byte {
	if i := bytes.Index(line[:min(len(line), 200)], []byte("]: ")); i >= 0 {
		return line[i+3:]
	}
	return line
}

var guesses = map[string]column{"rt": took, "request_time": took, "req_time": took, "duration": took, "time": took, "urt": listTook, "upstream_response_time": listTook,
	"ups_rt": listTook, "us": listStatus, "ust": listStatus, "upstream_status": listStatus, "uaddr": listHost, "upstream_addr": listHost, "msec": ended}

// appended is a value that was appended to "combined", such as 0.123, rt=0.123 or urt="0.100, 0.022".
var appended = regexp.MustCompile(`(\w*=)?("[^"]*"|(?:[^ "]+(?:, | : ))*[^ "]+)`)

// guess finds the times in what was appended to "combined". Of numbers with three decimals and without a name the first is $request_time,
// the second $upstream_response_time; one with ten digits before them is $msec.
func (r *rows) guess(text []byte) {
	if r.fields[took] = bytes.TrimSpace(text); len(r.fields[took]) < 9 && digitsOf(r.fields[took], 1000) == 1 {
		return // most often it is that alone
	}
	r.fields[took] = nil
	for _, match := range appended.FindAllSubmatch(text, -1) {
		name, value := bytes.TrimSuffix(match[1], []byte("=")), bytes.Trim(match[2], `"`)
		c := guesses[string(name)]
		if list := splitList(value); c == skipped && len(name) == 0 && len(list) > 0 {
			_, _, isTime := parseDecimal(list[0], time.Second)
			switch isTime = isTime && digitsOf(list[0], 1000) == 1; {
			case isTime && len(list) == 1 && len(value) == len("1700000000.000"):
				c = ended
			case isTime && len(list) == 1 && r.fields[took] == nil:
				c = took
			case isTime && r.fields[listTook] == nil:
				c = listTook
			case len(list[0]) == 3 && isDigits(list[0]) && r.fields[listTook] != nil:
				c = listStatus
			}
		}
		if c != skipped {
			r.fields[c] = value
		}
	}
}
