package source

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// A logFormat is the way in which a server writes lines: a text before each field, and one after the last.
type logFormat struct {
	texts  [][]byte
	fields []field
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
	"nginx": {must.Have(newLogFormat(combined + `"$rest`))},
	"envoy": {must.Have(newLogFormat(envoyHead + istioMiddle + envoyTail + ` %UPSTREAM_CLUSTER% `)),
		must.Have(newLogFormat(envoyHead + envoyTail))},
	"haproxy": {must.Have(newLogFormat(`%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/`))},
	"alb": {must.Have(newLogFormat(`$type $time $elb $client $target $request_processing_time $target_processing_time ` +
		`$response_processing_time $elb_status_code $target_status_code $received_bytes $sent_bytes "$request" "$user_agent" ` +
		`$ssl_cipher $ssl_protocol $target_group_arn "$trace_id" "$domain_name" "$chosen_cert_arn" ` +
		`$matched_rule_priority $request_creation_time `))},
}

// A variable is $name or ${name} of nginx, %NAME%, %NAME(X):9% of Envoy, or %name, %{+Q}name, %[expression] of HAProxy.
var (
	variable = regexp.MustCompile(`\$\{?(\w+)\}?|%(?:\{[^}]*\})?(?:\[[^\]]*\]|(\w+)(?:\([^)]*\)(?::\d+)?)?%?)`)
	quoted   = regexp.MustCompile(`%\{[^}]*\+Q[^}]*\}(\w+|\[[^\]]*\])`)
)

func newLogFormat(format string) (f logFormat, err error) {
	format = quoted.ReplaceAllString(format, `"%$1"`)
	end := 0
	for _, at := range variable.FindAllStringSubmatchIndex(format, -1) {
		if end == at[0] && end > 0 {
			return f, fmt.Errorf("log format: nothing separates %s from what stands before it: want a space or a quote", format[at[0]:at[1]])
		}
		name := string(variable.ExpandString(nil, "$1$2", format, at))
		if format[at[0]] == '%' && format[at[1]-1] != '%' {
			name = "%" + name
		}
		f.texts, f.fields = append(f.texts, []byte(format[end:at[0]])), append(f.fields, knownField(name))
		end = at[1]
	}
	f.texts = append(f.texts, []byte(format[end:]))
	what, want := lacking(f.fields, "$msec, $time_iso8601, $time_local, %START_TIME% or %tr", "$status, %RESPONSE_CODE% or %ST")
	if what != "" {
		err = fmt.Errorf("log format %q has no %s: want %s", format, what, want)
	}
	return f, err
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

// split finds the values of a line, and reports whether all are there.
func (f *logFormat) split(line []byte, w *row) bool {
	*w = row{}
	if !bytes.HasPrefix(line, f.texts[0]) {
		return false
	}
	line = line[len(f.texts[0]):]
	for i, one := range f.fields {
		next, end := f.texts[i+1], len(line)
		switch {
		case len(next) == 0:
		case one.column >= listTook && one.column <= listHost && next[0] == ' ':
			if end = listEnd(line); !bytes.HasPrefix(line[end:], next) {
				return false
			}
		default:
			if end = bytes.Index(line, next); end < 0 {
				return false
			}
		}
		w.set(one, line[:end])
		line = line[end+len(next):]
	}
	return true
}

// listEnd returns the length of a list of nginx, such as "a, b : c", without the space behind it.
func listEnd(text []byte) int {
	for i, c := range text {
		if c == ' ' && (i == 0 || text[i-1] != ',' && text[i-1] != ':') && !bytes.HasPrefix(text[i:], []byte(" : ")) {
			return i
		}
	}
	return len(text)
}

// splitList returns the values of a list.
func splitList(list []byte) [][]byte {
	return bytes.FieldsFunc(bytes.ReplaceAll(list, []byte(" : "), []byte(", ")), func(c rune) bool { return c == ',' || c == ' ' })
}

// fits reports whether line may have the format.
func (f *logFormat) fits(line []byte) bool {
	var w row
	found := f.split(afterSyslog(line), &w)
	at := bytes.TrimLeft(slices.Concat(w.values[ended], w.values[began]), "[")
	return found && outcomeOf(w.values[status]) != 0 && len(at) > 8 && isDigits(at[:2])
}

// formatsOf returns the formats that the lines of a log may have.
func (r *reader) formatsOf(kind string) []logFormat {
	if kindOf(r.LogFormat) == kind {
		return []logFormat{must.Have(newLogFormat(r.LogFormat))} // it was checked
	}
	return logFormats[kind]
}

// readLines reads a log with a format of its own.
func (r *rows) readLines(text *bufio.Reader) error {
	kind := r.c.kind
	formats, want := r.formatsOf(kind), "the line is not one of "+kind
	if kindOf(r.LogFormat) == kind {
		want += " in the log format"
	}
	return r.eachLine(text, nil, func(line []byte) error {
		if kind == "haproxy" {
			line = afterSyslog(line)
		}
		if !slices.ContainsFunc(formats, func(f logFormat) bool { return f.split(line, &r.row) }) {
			return r.unused("format", want)
		}
		r.guess(r.values[rest])
		return r.use()
	})
}

// afterSyslog returns the line without what syslog writes before it: "Nov 29 18:05:19 host haproxy[123]: ".
func afterSyslog(line []byte) []byte {
	if i := bytes.Index(line[:min(len(line), 200)], []byte("]: ")); i >= 0 {
		return line[i+3:]
	}
	return line
}

// guess finds the values in what was appended to "combined", such as 0.123, rt=0.123 or urt="0.100, 0.022". Of seconds with three
// decimals and without a name the first are $request_time, and the second $upstream_response_time; those since 1970 are $msec.
func (w *row) guess(text []byte) {
	for text = bytes.TrimLeft(text, " "); len(text) > 0; text = bytes.TrimLeft(text, " ") {
		f, named := field{}, -1
		if text[0] >= 'A' {
			named = bytes.IndexAny(text, `= "`)
		}
		if named > 0 && text[named] == '=' {
			if f = knownField(string(text[:named])); f.column == ended || f.column == began {
				f, named = field{}, -1 // it may be a time, or a duration
			}
			_, text, _ = bytes.Cut(text, []byte{'='})
		}
		var value []byte
		if len(text) > 0 && text[0] == '"' {
			value, text, _ = bytes.Cut(text[1:], []byte{'"'})
		} else {
			end := listEnd(text)
			value, text = text[:end], text[end:]
		}
		first, more, _ := bytes.Cut(value, []byte{' '})
		first = bytes.TrimSuffix(first, []byte{','})
		point := bytes.IndexByte(first, '.')
		millis, isMillis := bytes.CutSuffix(first, []byte("ms")) // of Traefik
		isTime := point > 0 && point == len(first)-4 && isDigits(first[:point]) && isDigits(first[point+1:])
		switch {
		case named > 0:
		case isTime && len(more) == 0 && point == 10:
			f = field{column: ended, rank: -1}
		case (isTime && len(more) == 0 || isMillis && isDigits(millis)) && w.values[took] == nil:
			f.column = took
		case isTime:
			f.column = listTook
		case w.values[took] != nil && w.values[listTook] == nil && bytes.IndexByte(first, ':') > 0:
			f.column = listHost
		case w.values[listTook] != nil && len(first) == 3 && isDigits(first):
			f.column = listStatus
		}
		if f.column == took {
			f.unit = cmp.Or(f.unit, time.Second)
		}
		w.set(f, value)
	}
}
