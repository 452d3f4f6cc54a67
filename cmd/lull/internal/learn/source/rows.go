package source

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// A column is what a field of a line means.
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
	attemptsTook   // of nginx: a list, of the attempts at upstream servers
	attemptsStatus // the same
	attemptsHost   // the same
	attempts       // of lull proxy, as JSON
	flags          // of Envoy
	endedBy        // HAProxy's state at the end
	lost           // of lull proxy: lines that are missing
	rest           // of nginx: all that was appended to "combined"
	columns
)

func (c column) isList() bool { return c >= attemptsTook && c <= attemptsHost }

// rows makes requests of rows of fields. Each log format has its own way to find the fields.
type rows struct {
	*reader
	c       *collector
	clock   clock
	fields  [columns][]byte // of the row
	unit    time.Duration   // of took; 0: it is not known
	side    observed.Side
	file    span
	before  int64 // the latest end of a request
	used    int64 // requests
	untimed int64 // rows without a duration
	latest  seriesOf
	number  int    // of latest; -1: none
	text    []byte // a buffer
}

var units = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": 1}

func (r *reader) newRows(kind string) (*rows, error) {
	c := r.logs[kind]
	if c == nil {
		c = newCollector(kind, &r.Options)
		r.logs[kind] = c
		r.kinds = append(r.kinds, kind)
	}
	rows := &rows{reader: r, c: c, clock: clock{zone: r.Zone}, unit: units[r.Fields["unit"]], side: observed.Served, number: -1}
	if side, ok := r.Fields["side"]; ok {
		rows.side = sides[side]
	}
	return rows, nil
}

// tooFewLines is after how many lines without a duration the reading ends.
const tooFewLines = 10_000

// use counts the request of the row.
func (r *rows) use() error {
	if n := r.fields[lost]; n != nil {
		r.problem(r.line, "lost", fmt.Sprintf("the proxy had no room for %.20s lines before this one", n))
		return nil
	}
	if r.fields[rest] != nil {
		r.guessRest(r.fields[rest])
	}
	var q request
	var unit time.Duration
	at, isEnd := r.fields[ended], true
	if at == nil {
		at, isEnd = r.fields[began], false
	}
	t, resolution, err := r.clock.parse(at)
	switch {
	case errors.Is(err, NoZone):
		return fmt.Errorf("%s: line %d: time is %q: %w", r.name, r.line, at, err)
	case errors.Is(err, errTwice):
		r.problem(r.line, "twice", fmt.Sprintf("%.40s is in an hour that comes twice in %v: of both, the one that is nearer to the line before is taken. "+
			"Times with an offset would tell", at, r.Zone))
	case err != nil:
		what := wantTime
		if errors.Is(err, errSkipped) {
			what = "a time that exists in " + r.Zone.String()
		}
		r.wrong("time", at, what)
		return nil
	}
	r.clock.last = t
	duration := r.fields[took]
	if duration == nil && r.fields[ended] != nil && r.fields[began] != nil {
		if start, _, err := r.clock.parse(r.fields[began]); err == nil && start <= t {
			r.text = strconv.AppendInt(r.text[:0], t-start, 10)
			duration, unit = append(r.text, "ns"...), resolution
		}
	}
	if len(duration) == 0 || len(duration) == 1 && duration[0] == '-' {
		r.untimed++
		if r.untimed > tooFewLines && r.used == 0 {
			return r.end()
		}
		r.problem(r.line, "untimed", "the line has no duration, and is not used")
		return nil
	}
	d, precision, ok := parseDecimal(duration, r.unit)
	if !ok || d > int64(30*24*time.Hour) {
		if r.unit == 0 && len(duration) > 0 && isDigits(duration[len(duration)-1:]) {
			return fmt.Errorf("%s: line %d: the duration %.20s has no unit: want unit s, ms, us or ns", r.name, r.line, duration)
		}
		r.wrong("duration", duration, "0 to 30 days, such as 0.123")
		return nil
	}
	q.outcome, ok = r.outcome()
	if !ok {
		r.wrong("status", r.fields[status], "100 to 599, ok, timeout, refused, reset, canceled or error")
		return nil
	}
	q.ended, q.took, q.resolution, q.precision = t, d, resolution, cmp.Or(unit, precision)
	if !isEnd {
		q.ended += d
	}
	if !r.From.IsZero() && q.ended < r.From.UnixNano() || !r.To.IsZero() && q.ended >= r.To.UnixNano() {
		r.note("what ended before or after the chosen time is left out")
		return nil
	}
	name := shortName(r.fields[service])
	if len(name) > 0 && r.Service != "" && string(name) != r.Service {
		r.note("other services are left out")
		return nil
	}
	if q.ended < r.before-int64(10*time.Second) {
		r.problem(r.line, "order", "the request ended more than 10 s before the one of the line before: logs were merged, or the clock was set back")
	}
	r.before = q.ended
	r.number = r.seriesOf(r.side, name, r.host())
	q.series = r.number
	q.retry = r.fields[attempt] != nil && number(r.fields[attempt]) != 1 && number(r.fields[attempt]) != 0
	r.c.add(&q)
	if r.used == 0 {
		r.file = span{q.ended, q.ended}
	}
	r.file.from, r.file.to = min(r.file.from, q.ended), max(r.file.to, q.ended)
	r.used++
	if r.fields[attemptsTook] != nil {
		r.useUpstream(&q, name)
	}
	if r.fields[attempts] != nil {
		r.useAttempts(&q, name)
	}
	return nil
}

// end ends a source.
func (r *rows) end() error {
	r.src.Used = r.used
	if r.used == 0 {
		if r.untimed > 0 {
			return &NoDuration{Source: r.name, Line: adviceFor(r.c.kind)}
		}
		for _, p := range r.data.Problems {
			if p.Source == r.name {
				return fmt.Errorf("%s: none of %d lines can be used as %s; first, line %d: %s", r.name, r.src.Lines, r.c.kind, p.Line, p.Text)
			}
		}
		return fmt.Errorf("%s: no line can be used as %s%s", r.name, r.c.kind, map[bool]string{true: ": " + r.src.Notes}[r.src.Notes != ""])
	}
	r.src.From, r.src.To = time.Unix(0, r.file.from).UTC(), time.Unix(0, r.file.to).UTC()
	r.c.files = append(r.c.files, r.file)
	return nil
}

func adviceFor(kind string) string {
	switch kind {
	case "nginx":
		return `log_format timed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" ` +
			"$msec $request_time \"$upstream_addr\" \"$upstream_response_time\" \"$upstream_status\"';\naccess_log /var/log/nginx/access.log timed;"
	case "envoy":
		return "add %DURATION% to text_format"
	case "haproxy":
		return "option httplog"
	}
	return "a field with the duration of each request, and its unit in its name or in the option unit"
}

// seriesOf returns the number of the series. It allocates only for a new one.
func (r *rows) seriesOf(side observed.Side, service, host []byte) int {
	if r.number >= 0 && r.latest.side == side && r.latest.service == string(service) && r.latest.host == string(host) {
		return r.number
	}
	s := seriesOf{side: side, service: string(service), host: string(host)}
	own := s
	if s.service == "" {
		own.service = r.Service
	}
	r.latest = s
	r.number = r.c.seriesFor(r.reader, own)
	return r.number
}

// host is the one that the request was sent to. It may be unknown.
func (r *rows) host() []byte {
	if h := r.fields[host]; string(h) != "-" && string(h) != "<NOSRV>" {
		return h
	}
	return nil
}

// shortName returns the name of a service: of a cluster of Istio, such as "outbound|80||shop.default.svc.cluster.local", "shop".
func shortName(name []byte) []byte {
	if string(name) == "-" {
		return nil
	}
	if i := bytes.LastIndexByte(name, '|'); i >= 0 {
		name, _, _ = bytes.Cut(name[i+1:], []byte{'.'})
	}
	return name
}

// outcome is by the status and, if there is none, by who ended the request.
func (r *rows) outcome() (int, bool) {
	if o, ok := outcomeOf(r.fields[status]); ok && o != outcomeError {
		return o, true
	}
	if f := r.fields[flags]; f != nil { // Envoy writes status 0 if there was no answer
		if bytes.Contains(f, []byte("DC")) {
			return outcomeCanceled, true
		}
		return outcomeError, true
	}
	if f := r.fields[endedBy]; len(f) > 0 { // HAProxy writes -1
		if f[0] == 'C' || f[0] == 'c' {
			return outcomeCanceled, true
		}
		return outcomeError, true
	}
	return outcomeOf(r.fields[status])
}

// outcomeOf reads a status or a word.
func outcomeOf(b []byte) (int, bool) {
	if len(b) == 3 && b[0] >= '1' && b[0] <= '5' {
		if n := number(b); n >= 0 {
			if n == 499 || n == 460 { // of nginx and lull proxy, of ALB: the client went away
				return outcomeCanceled, true
			}
			return n, true
		}
	}
	switch string(bytes.ToLower(b)) {
	case "ok", "success", "true":
		return 200, true
	case "timeout", "timed_out", "deadline_exceeded":
		return outcomeTimeout, true
	case "refused", "connection_refused":
		return outcomeRefused, true
	case "reset", "connection_reset", "connection_closed", "unexpected_eof":
		return outcomeReset, true
	case "canceled", "cancelled":
		return outcomeCanceled, true
	case "error", "failed", "false", "0", "000", "-1", "-":
		return outcomeError, true
	}
	return 0, false
}

// useUpstream counts nginx' attempts at upstream servers. They were one after the other, and the last ended with the request.
func (r *rows) useUpstream(q *request, service []byte) {
	times, statuses, hosts := r.fields[attemptsTook], r.fields[attemptsStatus], r.fields[attemptsHost]
	type one struct {
		took    int64
		outcome int
		host    []byte
	}
	var all [16]one
	n := 0
	for ; len(times) > 0 && n < len(all); n++ {
		var t, s, h []byte
		t, times = cutList(times)
		s, statuses = cutList(statuses)
		h, hosts = cutList(hosts)
		o := one{outcome: q.outcome, host: h, took: -1}
		if string(t) == "-1" && len(h) > 1 { // of ALB: the target did not answer
			o.took, s = q.took, nil
			o.outcome = map[int]int{502: outcomeReset, 504: outcomeTimeout}[q.outcome]
			o.outcome = cmp.Or(o.outcome, q.outcome)
		} else if string(t) != "-" && string(t) != "-1" {
			d, precision, ok := parseDecimal(t, time.Second)
			if !ok {
				r.wrong("upstream_response_time", t, "seconds, such as 0.123, separated by commas")
				return
			}
			o.took, q.precision = d, precision
		}
		if len(s) > 0 {
			o.outcome, _ = outcomeOf(s)
		}
		if o.outcome == 0 {
			r.wrong("upstream_status", s, "100 to 599, separated by commas")
			return
		}
		all[n] = o
	}
	if len(times) > 0 {
		r.problem(r.line, "upstream", fmt.Sprintf("the request had more than %d attempts: the others are not used", len(all)))
	}
	a := *q
	for i := n - 1; i >= 0; i-- {
		if all[i].took < 0 { // no server was asked
			continue
		}
		a.took, a.outcome, a.retry = all[i].took, all[i].outcome, i > 0
		a.series = r.seriesOf(observed.Attempts, service, all[i].host)
		r.c.numbered = true
		r.c.add(&a)
		a.ended -= a.took
	}
}

// cutList returns the first value of a list of nginx: "a, b : c".
func cutList(list []byte) (first, others []byte) {
	for i, c := range list {
		if (c == ',' || c == ' ') && i+1 < len(list) {
			return list[:i], bytes.TrimLeft(list[i+1:], ", :")
		}
	}
	return list, nil
}

// combinedFormat and the others are the formats that are known. What follows the last field of each is not read.
var (
	combinedFormat = mustFormat(`$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"$rest`)
	envoyFormat    = mustFormat(`[%START_TIME%] "%REQ(:METHOD)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ` + envoyTail)
	istioFormat    = mustFormat(`[%START_TIME%] "%REQ(:METHOD)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% ` +
		`"%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ` + envoyTail + ` %UPSTREAM_CLUSTER% %OTHER%`)
	haproxyFormat = mustFormat(`%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac`)
	albFormat     = mustFormat(`$type $time $elb $client $target $request_processing_time $target_processing_time $response_processing_time $elb_status_code ` +
		`$target_status_code $received_bytes $sent_bytes "$request" "$user_agent" $ssl_cipher $ssl_protocol $target_group_arn "$trace_id" "$domain_name" ` +
		`"$chosen_cert_arn" $matched_rule_priority $request_creation_time "$other`)
)

const envoyTail = `%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"`

// A logFormat is the way in which a server writes lines.
type logFormat []piece

// A piece is text that stands in each line, and the field after it.
type piece struct {
	before string
	column column
}

// columnOf has the fields of all log formats.
var columnOf = map[string]column{
	"time_local": ended, "time_iso8601": ended, "msec": ended, "status": status, "request_time": took, "upstream_response_time": attemptsTook,
	"upstream_status": attemptsStatus, "upstream_addr": attemptsHost, "rest": rest,
	"START_TIME": began, "RESPONSE_CODE": status, "RESPONSE_FLAGS": flags, "DURATION": took, "UPSTREAM_CLUSTER": service, "UPSTREAM_CLUSTER_RAW": service, "UPSTREAM_HOST": host,
	"tr": began, "t": began, "T": ended, "Tl": ended, "Ta": took, "Tt": took, "ST": status, "ts": endedBy, "tsc": endedBy, "b": service, "s": host,
	"time": ended, "request_creation_time": began, "elb_status_code": status, "target": attemptsHost, "target_processing_time": attemptsTook, "target_status_code": attemptsStatus,
}

func mustFormat(format string) logFormat {
	f, err := newLogFormat(format)
	if err != nil {
		panic(err)
	}
	return f
}

// newLogFormat reads nginx' $names, Envoy's %NAMES(...)% and HAProxy's %names.
func newLogFormat(format string) (logFormat, error) {
	var all logFormat
	text := ""
	precise := false // $msec is there: other times are not needed
	for len(format) > 0 {
		name, size := variable(format)
		if size == 0 {
			text += format[:1]
			format = format[1:]
			continue
		}
		if len(all) > 0 && text == "" {
			return nil, fmt.Errorf("log format: nothing separates %s from what stands before it: want a space or a quote", format[:size])
		}
		c := columnOf[name]
		if name == "msec" {
			precise = true
			for i, p := range all {
				if p.column == ended {
					all[i].column = skipped
				}
			}
		} else if c == ended && precise {
			c = skipped
		}
		all = append(all, piece{text, c})
		text, format = "", format[size:]
	}
	return append(all, piece{before: text}), nil
}

// variable returns the name of the variable that format begins with, and how long it is; 0 if there is none.
func variable(format string) (name string, size int) {
	letters := func(from int) int {
		for from < len(format) && (format[from] == '_' || format[from] >= '0' && format[from] <= '9' || format[from]|0x20 >= 'a' && format[from]|0x20 <= 'z') {
			from++
		}
		return from
	}
	if len(format) < 2 || format[0] != '$' && format[0] != '%' {
		return "", 0
	}
	if format[0] == '$' {
		if format[1] == '{' {
			end := letters(2)
			if end < len(format) && format[end] == '}' {
				return format[2:end], end + 1
			}
			return "", 0
		}
		end := letters(1)
		return format[1:end], end * min(1, end-1)
	}
	start := 1
	if format[1] == '{' || format[1] == '[' { // HAProxy's %{+Q}r, and %[expression]
		closing := map[byte]byte{'{': '}', '[': ']'}[format[1]]
		end := bytes.IndexByte([]byte(format), closing)
		if end < 0 {
			return "", 0
		}
		if start = end + 1; format[1] == '[' {
			return "expression", start
		}
	}
	end := letters(start)
	if end == start {
		return "", 0
	}
	name, after := format[start:end], end
	if after < len(format) && format[after] == '(' { // Envoy's %REQ(NAME):LENGTH%
		for after < len(format) && format[after] != ')' {
			after++
		}
		after++
		if name != "START_TIME" {
			name += "()"
		}
	}
	if after < len(format) && format[after] == ':' && format[after-1] == ')' {
		for after++; after < len(format) && format[after] >= '0' && format[after] <= '9'; after++ {
		}
	}
	if after < len(format) && format[after] == '%' {
		after++
	}
	return name, min(after, len(format))
}

// split finds the fields of line, and reports whether all are there.
func (f logFormat) split(line []byte, fields *[columns][]byte) bool {
	if !bytes.HasPrefix(line, []byte(f[0].before)) {
		return false
	}
	line = line[len(f[0].before):]
	for i, p := range f[:len(f)-1] {
		next := f[i+1].before
		end := len(line)
		if next != "" {
			if end = bytes.Index(line, []byte(next)); end < 0 {
				return false
			}
			for next[0] == ' ' && end > 0 && (line[end-1] == ',' || line[end-1] == ':' || bytes.HasPrefix(line[end:], []byte(" : "))) && p.column.isList() {
				more := bytes.Index(line[end+1:], []byte(next))
				if more < 0 {
					return false
				}
				end += 1 + more
			}
		}
		if p.column != skipped {
			fields[p.column] = line[:end]
		}
		line = line[min(len(line), end+len(next)):]
	}
	return true
}

// readLines reads a log with a format of its own. head is where it begins.
func (r *rows) readLines(text *bufio.Reader, kind string, head []byte) error {
	formats, err := r.formatsOf(kind)
	if err != nil {
		return err
	}
	r.unit = time.Second
	if kind == "envoy" || kind == "haproxy" {
		r.unit = time.Millisecond
	}
	want := "a line of " + kind
	if r.LogFormat != "" {
		want += " in the log format that was given"
	}
	return r.eachLine(text, func([]byte) bool { return false }, func(line []byte) error {
		if kind == "haproxy" {
			line = afterSyslog(line)
		}
		for _, f := range formats {
			r.fields = [columns][]byte{}
			if !f.split(line, &r.fields) {
				continue
			}
			if kind == "envoy" && len(formats) > 1 && !isDigits(r.fields[took]) {
				continue // Istio's lines have more fields before the duration
			}
			return r.use()
		}
		r.problem(r.line, "format", "the line is not "+want)
		return nil
	})
}

func (r *rows) formatsOf(kind string) ([]logFormat, error) {
	if r.LogFormat != "" {
		f, err := newLogFormat(r.LogFormat)
		if err != nil {
			return nil, err
		}
		has := map[column]bool{}
		for _, p := range f {
			has[p.column] = true
		}
		if !has[ended] && !has[began] {
			return nil, fmt.Errorf("log format %q has no time: want $msec, $time_iso8601, $time_local, %%START_TIME%% or %%tr", r.LogFormat)
		}
		if !has[took] {
			return nil, &NoDuration{Source: r.name, Line: adviceFor(kind)}
		}
		return []logFormat{f}, nil
	}
	return map[string][]logFormat{"nginx": {combinedFormat}, "envoy": {envoyFormat, istioFormat}, "haproxy": {haproxyFormat}, "alb": {albFormat}}[kind], nil
}

// afterSyslog returns the line without what syslog writes before it: "Nov 29 18:05:19 host haproxy[123]: ".
func afterSyslog(line []byte) []byte {
	if i := bytes.Index(line[:min(len(line), 200)], []byte("]: ")); i >= 0 {
		return line[i+3:]
	}
	return line
}

// guessRest looks for times in what was appended to "combined": rt=0.123, or numbers with three decimals, of which the first is
// $request_time and the second $upstream_response_time.
func (r *rows) guessRest(text []byte) {
	for text = bytes.TrimLeft(text, " "); len(text) > 0; text = bytes.TrimLeft(text, " ") {
		var key, value []byte
		if eq := bytes.IndexAny(text, "= \""); eq > 0 && text[eq] == '=' {
			key, text = text[:eq], text[eq+1:]
		}
		if len(text) > 0 && text[0] == '"' {
			value, text, _ = bytes.Cut(text[1:], []byte{'"'})
		} else {
			end := 0 // a list goes on after a comma
			for end < len(text) && (text[end] != ' ' || end > 0 && (text[end-1] == ',' || text[end-1] == ':') || bytes.HasPrefix(text[end:], []byte(" : "))) {
				end++
			}
			value, text = text[:end], text[end:]
		}
		switch string(key) {
		case "rt", "request_time", "req_time", "duration", "time":
			r.fields[took] = value
		case "urt", "upstream_response_time", "ups_rt", "upstream_time":
			r.fields[attemptsTook] = value
		case "us", "upstream_status", "ups_status", "ust":
			r.fields[attemptsStatus] = value
		case "uaddr", "upstream_addr", "upstream":
			r.fields[attemptsHost] = value
		case "msec":
			r.fields[ended] = value
		case "":
			r.guessValue(value)
		}
	}
}

func (r *rows) guessValue(value []byte) {
	first, _ := cutList(value)
	dot := bytes.IndexByte(first, '.')
	switch {
	case dot > 0 && dot == len(first)-4 && isDigits(first[:dot]) && isDigits(first[dot+1:]):
		switch {
		case dot == 10 && len(first) == len(value):
			r.fields[ended] = value
		case r.fields[took] == nil && len(first) == len(value):
			r.fields[took] = value
		case r.fields[attemptsTook] == nil:
			r.fields[attemptsTook] = value
		}
	case r.fields[attemptsTook] != nil && len(first) == 3 && isDigits(first):
		r.fields[attemptsStatus] = value
	case bytes.IndexByte(first, ':') > 0 && r.fields[attemptsHost] == nil && isDigits(first[bytes.LastIndexByte(first, ':')+1:]):
		r.fields[attemptsHost] = value
	}
}
