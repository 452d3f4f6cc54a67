package source

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// rows makes requests of rows. Each format has its own way to find their values.
type rows struct {
	*reader
	row
	c          *collector
	clock      clock
	resolution time.Duration // of the times of day
	before     time.Time     // when the request of the line before ended
	untimed    int64         // rows without a duration
}

var sides = map[string]observed.Side{"calls": observed.Calls, "attempts": observed.Attempts, "served": observed.Served}

// readRows reads a log.
func (r *reader) readRows(text *bufio.Reader) error {
	kind := r.src.Kind
	i := slices.IndexFunc(r.logs, func(c *collector) bool { return c.kind == kind })
	if i < 0 {
		i, r.logs = len(r.logs), append(r.logs, newCollector(kind, r.Step))
	}
	all := &rows{reader: r, c: r.logs[i], clock: clock{zone: r.Zone}, resolution: time.Hour}
	read := all.readLines
	switch kind {
	case "json":
		read = all.readJSON
	case "csv":
		read = all.readCSV
	}
	if err := read(text); err != nil {
		return err
	}
	return all.end()
}

// use counts the request of the row.
func (r *rows) use() error {
	if n := r.values[lost]; n != nil {
		return r.unused("lost", fmt.Sprintf("the proxy had no room for %.20s lines before this one", n))
	}
	side, n := observed.Served, r.values[attempt]
	r.c.cuts = r.c.cuts || r.cuts
	r.c.numbered = r.c.numbered || n != nil
	if n != nil {
		side = observed.Attempts
	}
	if r.values[door] != nil { // lull proxy's time is that of the beginning, and it has no status if there was no answer
		r.values[began], r.values[ended] = r.values[ended], nil
		r.set(field{column: status, rank: 1000}, []byte("error"))
		side = observed.Calls
	}
	if own := r.Fields["side"]; own != "" {
		side = sides[own]
	}
	var q request
	if err := r.setTimes(&q); err != nil {
		return err
	}
	if q.outcome = outcomeOf(r.values[status]); q.outcome == 0 {
		return r.wrong("status", r.values[status], "100 to 599, ok, timeout, refused, reset, canceled or error")
	}
	if by := r.values[endedBy]; q.outcome == failed && len(by) > 0 && by[0]|0x20 == 'c' {
		q.outcome = canceled // the client has left
	}
	if q.outcome >= 500 { // the proxy's own answer, perhaps
		for flag := range bytes.SplitSeq(r.values[flags], []byte(",")) {
			q.outcome = cmp.Or(outcomes[envoyFlags[string(flag)]], q.outcome)
		}
	}
	name := shortName(r.values[service])
	if r.leavesOut(q.ended, string(name)) {
		return nil
	}
	if q.ended.Before(r.before.Add(-10 * time.Second)) {
		r.problem("order", "the request ended more than 10 s before the one of the line before: logs were merged, or the clock was set back")
	}
	r.before = q.ended
	r.used(q.ended)
	q.retry = isDigits(n) && string(n) != "0" && string(n) != "1"
	q.host = r.values[host]
	r.add(side, name, &q)
	r.addAttempts(&q, name)
	return nil
}

// setTimes sets when the request ended and how long it took.
func (r *rows) setTimes(q *request) (err error) {
	text, duration := r.values[ended], r.values[took]
	if text == nil {
		text = r.values[began]
	}
	var resolution time.Duration
	q.ended, resolution, err = r.clock.parse(text)
	switch {
	case errors.Is(err, errZone):
		return fmt.Errorf("time is %q: %w", text, err)
	case errors.Is(err, errTwice):
		r.problem("twice", fmt.Sprintf("time is %q: this hour comes twice in %v, and the time that is nearer to the line before is taken: want times with an offset", text, r.Zone))
	case err != nil:
		return r.wrong("time", text, err.Error())
	}
	r.resolution = min(r.resolution, resolution)
	if duration == nil && r.values[ended] != nil && r.values[began] != nil {
		from, precision, err := r.clock.parse(r.values[began])
		if q.took, q.precision = q.ended.Sub(from), max(precision, resolution); err != nil || q.took < 0 {
			return r.wrong("start", r.values[began], "a time before the end")
		}
		return nil
	}
	if duration == nil {
		if r.untimed++; r.untimed > 10_000 && r.src.Used == 0 {
			return r.noDuration()
		}
		return r.unused("untimed", "the line has no duration, and is not used")
	}
	if r.unit == 0 && isDigits(duration[len(duration)-1:]) {
		return fmt.Errorf("duration is %.20s, and has no unit: want --field unit=ms, or s, us or ns", duration)
	}
	d, precision, ok := parseDecimal(duration, r.unit)
	if q.took, q.precision = time.Duration(d), precision; !ok || q.took > 30*24*time.Hour {
		return r.wrong("duration", duration, "0 to 30 days, such as 0.123")
	}
	if r.values[ended] == nil {
		q.ended = q.ended.Add(q.took)
	}
	return nil
}

// add counts a request, or an attempt.
func (r *rows) add(side observed.Side, service []byte, q *request) {
	if string(q.host) == "-" || string(q.host) == "<NOSRV>" { // none was asked
		q.host = nil
	}
	of := seriesOf{side, cmp.Or(string(service), r.Service), string(q.host)}
	r.c.add(r.c.seriesFor(r.reader, of), q)
}

// end ends a source.
func (r *rows) end() error {
	if r.src.Used > 0 {
		r.c.resolution = max(r.c.resolution, r.resolution)
		return nil
	}
	if r.untimed > 0 {
		return fmt.Errorf("%s: %w", r.name, r.noDuration())
	}
	first := "there is none"
	if i := slices.IndexFunc(r.data.Problems, func(p observed.Problem) bool { return p.Source == r.name }); i >= 0 {
		first = fmt.Sprintf("line %d: %s", r.data.Problems[i].Line, r.data.Problems[i].Text)
	}
	return fmt.Errorf("%s: no line can be used as %s: %s", r.name, r.c.kind, first)
}

// shortName returns the name of a service. That of a cluster of Istio, such as "outbound|80||shop.default.svc.cluster.local", is "shop".
func shortName(name []byte) []byte {
	if i := bytes.LastIndexByte(name, '|'); i >= 0 {
		name, _, _ = bytes.Cut(name[i+1:], []byte{'.'})
	}
	return name
}

var outcomes = map[string]int{
	"ok": 200, "success": 200, "true": 200, "timeout": timeout, "timed_out": timeout, "deadline_exceeded": timeout, "refused": refused, "connection_refused": refused,
	"reset": reset, "connection_reset": reset, "connection_closed": reset, "unexpected_eof": reset, "canceled": canceled, "cancelled": canceled,
	"error": failed, "failed": failed, "false": failed, "0": failed, "000": failed, "-1": failed, "-": failed,
	"499": canceled, "460": canceled, // of nginx and lull proxy, of ALB: the client has left
}

// outcomeOf reads a status or a word; 0: it is none.
func outcomeOf(b []byte) int {
	word := string(bytes.ToLower(b))
	code, err := strconv.Atoi(word)
	if o := outcomes[word]; o != 0 || err != nil || len(b) != 3 || code < 100 || code > 599 {
		return o
	}
	return code
}

// addAttempts counts the attempts of a request. They were one after the other, and the last ended with it.
func (r *rows) addAttempts(q *request, name []byte) {
	list, tries, want := r.values[attempts], loggedTries, "a list of code, seconds and waited (0 to 1000000)"
	if list == nil {
		list, tries, want = r.values[listTook], r.listedTries, "as many seconds as statuses of upstream servers, separated by commas"
	}
	if list == nil {
		return
	}
	all, ok := tries(list, q)
	if !ok {
		r.wrong("attempts", list, want)
		return
	}
	end := q.ended
	for i := len(all) - 1; i >= 0; i-- {
		a := &all[i]
		a.ended, a.retry = end.Add(-a.waited), i > 0
		end = a.ended.Add(-a.took)
		r.c.numbered = true
		r.add(observed.Attempts, name, a)
	}
}

// loggedTries reads the list in lull proxy's log.
func loggedTries(list []byte, _ *request) (all []request, ok bool) {
	var logged []struct {
		Code            string
		Seconds, Waited float64
	}
	err := json.Unmarshal(list, &logged)
	for _, one := range logged {
		if one.Seconds < 0 || one.Seconds > 1e6 || one.Waited < 0 || one.Waited > 1e6 {
			return nil, false
		}
		all = append(all, request{took: time.Duration(one.Seconds * 1e9), precision: time.Microsecond,
			waited: time.Duration(one.Waited * 1e9), outcome: cmp.Or(outcomeOf([]byte(cmp.Or(one.Code, "ok"))), failed)})
	}
	return all, err == nil
}

// listedTries reads the lists of nginx and ALB.
func (r *rows) listedTries(list []byte, q *request) (all []request, ok bool) {
	statuses, hosts := splitList(r.values[listStatus]), splitList(r.values[listHost])
	for i, text := range splitList(list) {
		a := request{outcome: q.outcome}
		if i < len(hosts) {
			a.host = hosts[i]
		}
		if i < len(statuses) && (string(statuses[i]) != "-" || q.outcome != canceled) {
			a.outcome = outcomeOf(statuses[i])
		}
		d, precision, ok := parseDecimal(text, time.Second)
		switch a.took, a.precision = time.Duration(d), precision; {
		case string(text) == "-1" && len(a.host) > 1: // of ALB: the target did not answer
			if a.took, a.precision, a.outcome = q.took, q.precision, q.outcome; q.outcome == 504 {
				a.outcome = timeout
			}
		case string(text) == "-" || string(text) == "-1": // no server was asked
			continue
		case !ok || a.outcome == 0:
			return nil, false
		}
		all = append(all, a)
	}
	return all, true
}
