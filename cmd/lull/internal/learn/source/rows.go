package source

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
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
	listTook   // of nginx: a list, of the attempts at upstream servers
	listStatus // the same
	listHost   // the same
	attempts   // of lull proxy, as JSON
	flags      // of Envoy
	endedBy    // HAProxy's state at the end
	lost       // of lull proxy: lines that are missing
	rest       // of nginx: all that was appended to "combined"
	columns
)

// rows makes requests of rows of fields. Each format has its own way to find the fields.
type rows struct {
	*reader
	c       *collector
	clock   clock
	fields  [columns][]byte // of the row
	ranks   [columns]int    // of the fields
	unit    time.Duration   // of took; 0: it is not known
	side    observed.Side
	file    file
	before  time.Time // when the request of the line before ended
	untimed int64     // rows without a duration
}

var (
	units = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": 1}
	sides = map[string]observed.Side{"calls": observed.Calls, "attempts": observed.Attempts, "served": observed.Served, "": observed.Served}
)

func (r *reader) newRows(kind string) *rows {
	if r.logs[kind] == nil {
		r.logs[kind] = newCollector(kind, r.Step)
		r.kinds = append(r.kinds, kind)
	}
	return &rows{reader: r, c: r.logs[kind], clock: clock{zone: r.Zone}, unit: units[r.Fields["unit"]], side: sides[r.Fields["side"]], file: file{resolution: time.Hour}}
}

func (r *rows) read(text *bufio.Reader) (err error) {
	switch r.src.Kind {
	case "json":
		err = r.readJSON(text)
	case "csv":
		err = r.readCSV(text)
	default:
		err = r.readLines(text)
	}
	if err != nil {
		return err
	}
	return r.end()
}

// use counts the request of the row.
func (r *rows) use() error {
	if n := r.fields[lost]; n != nil {
		r.problem("lost", fmt.Sprintf("the proxy had no room for %.20s lines before this one", n))
		return nil
	}
	if r.fields[rest] != nil {
		r.guess(r.fields[rest])
	}
	var q request
	ok, err := r.setTimes(&q)
	if !ok || err != nil {
		return err
	}
	if q.outcome, ok = r.outcome(); !ok {
		r.wrong("status", r.fields[status], "100 to 599, ok, timeout, refused, reset, canceled or error")
		return nil
	}
	name := shortName(r.fields[service])
	if r.outside(q.ended) || len(name) > 0 && r.isOther(string(name)) {
		return nil
	}
	if q.ended.Before(r.before.Add(-10 * time.Second)) {
		r.problem("order", "the request ended more than 10 s before the one of the line before: logs were merged, or the clock was set back")
	}
	if r.before = q.ended; r.src.Used == 0 || q.ended.Before(r.file.from) {
		r.file.from = q.ended
	}
	if q.ended.After(r.file.to) {
		r.file.to = q.ended
	}
	n := r.fields[attempt]
	q.retry = isDigits(n) && string(n) != "0" && string(n) != "1"
	r.add(r.side, name, r.fields[host], &q)
	r.src.Used++
	r.useList(&q, name)
	r.useAttempts(&q, name)
	return nil
}

// setTimes sets when the request ended and how long it took. ok is false if a time is wrong; an error ends the reading.
func (r *rows) setTimes(q *request) (ok bool, err error) {
	text, duration := r.fields[ended], r.fields[took]
	if text == nil {
		text = r.fields[began]
	}
	var resolution time.Duration
	q.ended, resolution, err = r.clock.parse(text)
	switch {
	case errors.Is(err, errZone):
		return false, fmt.Errorf("%s: line %d: time is %q: %w", r.name, r.line, text, err)
	case errors.Is(err, errTwice):
		r.problem("twice", fmt.Sprintf("time is %q: this hour comes twice in %v, and the time that is nearer to the line before is taken: want times with an offset", text, r.Zone))
	case errors.Is(err, errSkipped):
		r.wrong("time", text, "a time that there was in "+r.Zone.String())
		return false, nil
	case err != nil:
		r.wrong("time", text, wantTime)
		return false, nil
	}
	r.file.resolution = min(r.file.resolution, resolution)
	if duration == nil && r.fields[ended] != nil && r.fields[began] != nil {
		from, precision, err := r.clock.parse(r.fields[began])
		if q.took, q.precision = q.ended.Sub(from), max(precision, resolution); err != nil || q.took < 0 {
			r.wrong("start", r.fields[began], "a time before the end")
		}
		return err == nil && q.took >= 0, nil
	}
	if len(duration) == 0 || string(duration) == "-" {
		if r.untimed++; r.untimed > 10_000 && r.src.Used == 0 {
			return false, r.end()
		}
		r.problem("untimed", "the line has no duration, and is not used")
		return false, nil
	}
	if r.unit == 0 && isDigits(duration[len(duration)-1:]) {
		return false, fmt.Errorf("%s: line %d: duration is %.20s, and has no unit: want the field unit, which is s, ms, us or ns", r.name, r.line, duration)
	}
	d, precision, ok := parseDecimal(duration, r.unit)
	if q.took, q.precision = time.Duration(d), precision; !ok || q.took > 30*24*time.Hour {
		r.wrong("duration", duration, "0 to 30 days, such as 0.123")
		return false, nil
	}
	if r.fields[ended] == nil {
		q.ended = q.ended.Add(q.took)
	}
	return true, nil
}

// outside reports whether a time is left out.
func (r *reader) outside(t time.Time) bool {
	out := !r.From.IsZero() && t.Before(r.From) || !r.To.IsZero() && !t.Before(r.To)
	if out {
		r.note("what is outside of the chosen time is left out")
	}
	return out
}

// isOther reports whether a service is left out.
func (r *reader) isOther(name string) bool {
	other := r.Service != "" && name != r.Service
	if other {
		r.note("other services are left out")
	}
	return other
}

// add counts a request, or an attempt. The look-up allocates nothing.
func (r *rows) add(side observed.Side, service, host []byte, q *request) {
	if string(host) == "-" || string(host) == "<NOSRV>" { // none was asked
		host = nil
	}
	i, ok := r.c.known[seriesOf{side, string(service), string(host)}]
	if !ok || len(service) == 0 && r.Service != "" {
		i = r.c.seriesFor(r.reader, seriesOf{side, cmp.Or(string(service), r.Service), string(host)})
	}
	r.c.add(i, q)
}

// end ends a source.
func (r *rows) end() error {
	if r.src.Used > 0 {
		r.src.From, r.src.To = r.file.from.UTC(), r.file.to.UTC()
		r.c.files = append(r.c.files, r.file)
		return nil
	}
	if r.untimed > 0 {
		return &NoDuration{Source: r.name, Line: adviceFor(r.c.kind)}
	}
	first := cmp.Or(r.src.Notes, "there is none")
	if i := slices.IndexFunc(r.data.Problems, func(p observed.Problem) bool { return p.Source == r.name }); i >= 0 {
		first = fmt.Sprintf("line %d: %s", r.data.Problems[i].Line, r.data.Problems[i].Text)
	}
	return fmt.Errorf("%s: no line can be used as %s: %s", r.name, r.c.kind, first)
}

func adviceFor(kind string) string {
	return cmp.Or(map[string]string{"nginx": "log_format timed '" + advised + "';\naccess_log /var/log/nginx/access.log timed;", "envoy": "%DURATION% in text_format of the access log",
		"haproxy": "option httplog"}[kind], "a field with the duration of each request. Its name has the unit (duration_ms), or the field unit")
}

// shortName returns the name of a service. That of a cluster of Istio, such as "outbound|80||shop.default.svc.cluster.local", is "shop".
func shortName(name []byte) []byte {
	if i := bytes.LastIndexByte(name, '|'); i >= 0 {
		name, _, _ = bytes.Cut(name[i+1:], []byte{'.'})
	}
	if string(name) == "-" {
		return nil
	}
	return name
}

// outcome is the status or, where there was no answer, who ended the request.
func (r *rows) outcome() (int, bool) {
	o, ok := outcomeOf(r.fields[status])
	by := r.fields[endedBy]
	if o == failed && (bytes.Contains(r.fields[flags], []byte("DC")) || len(by) > 0 && by[0]|0x20 == 'c') { // the client has left
		o = canceled
	}
	return o, ok
}

var outcomes = map[string]int{
	"ok": 200, "success": 200, "true": 200, "timeout": timeout, "timed_out": timeout, "deadline_exceeded": timeout, "refused": refused, "connection_refused": refused,
	"reset": reset, "connection_reset": reset, "connection_closed": reset, "unexpected_eof": reset, "canceled": canceled, "cancelled": canceled,
	"error": failed, "failed": failed, "false": failed, "0": failed, "000": failed, "-1": failed, "-": failed,
	"499": canceled, "460": canceled, // of nginx and lull proxy, of ALB: the client has left
}

// outcomeOf reads a status or a word.
func outcomeOf(b []byte) (int, bool) {
	if o, ok := outcomes[string(b)]; ok {
		return o, true
	}
	if len(b) == 3 && b[0] >= '1' && b[0] <= '5' && isDigits(b) {
		return int(b[0]-'0')*100 + int(b[1]-'0')*10 + int(b[2]-'0'), true
	}
	o, ok := outcomes[string(bytes.ToLower(b))]
	return o, ok
}

// useList counts attempts at upstream servers. They were one after the other, and the last ended with the request.
func (r *rows) useList(q *request, service []byte) {
	times, statuses, hosts := splitList(r.fields[listTook]), splitList(r.fields[listStatus]), splitList(r.fields[listHost])
	a := *q
	for i := len(times) - 1; i >= 0; i-- {
		var at []byte
		if i < len(hosts) {
			at = hosts[i]
		}
		if a.outcome = q.outcome; i < len(statuses) && (string(statuses[i]) != "-" || q.outcome != canceled) {
			a.outcome, _ = outcomeOf(statuses[i])
		}
		d, precision, ok := parseDecimal(times[i], time.Second)
		switch took := string(times[i]); {
		case took == "-1" && len(at) > 1: // of ALB: the target did not answer
			if d, precision, a.outcome = int64(q.took), q.precision, q.outcome; q.outcome == 504 {
				a.outcome = timeout
			}
		case took == "-" || took == "-1": // no server was asked
			continue
		case !ok || a.outcome == 0:
			r.wrong("upstream_response_time or upstream_status", r.fields[listTook], "as many seconds and statuses, separated by commas")
			return
		}
		a.took, a.precision, a.retry, r.c.numbered = time.Duration(d), precision, i > 0, true
		r.add(observed.Attempts, service, at, &a)
		a.ended = a.ended.Add(-a.took)
	}
}

// splitList returns the values of a list of nginx: "a, b : c".
func splitList(list []byte) [][]byte {
	if bytes.IndexByte(list, ' ') < 0 && len(list) > 0 {
		return [][]byte{list}
	}
	return bytes.FieldsFunc(bytes.ReplaceAll(list, []byte(" : "), []byte(", ")), func(c rune) bool { return c == ',' || c == ' ' })
}
