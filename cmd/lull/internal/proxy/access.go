package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/server/proxy"
)

// waitingLines is how many lines of the access log may wait to be written.
const waitingLines = 4096

// An accessLog has a line of JSON for each request. One goroutine writes them: a slow disk delays no request. Lines that find
// no room are counted.
type accessLog struct {
	lost atomic.Uint64

	say     func(any)
	out     io.Writer
	records chan proxy.Record // nil: there is no log
	closing chan struct{}
	ended   chan struct{}
}

// line is a Record in the access log.
type line struct {
	proxy.Record
	Seconds  float64       `json:"seconds"`
	Attempts []attemptLine `json:"attempts,omitempty"`
	Reason   string        `json:"reason,omitempty"`
}

type attemptLine struct {
	Code    string  `json:"code,omitempty"`
	Seconds float64 `json:"seconds"`
	Waited  float64 `json:"waited,omitempty"`
}

func lineOf(r proxy.Record) line {
	l := line{Record: r, Seconds: seconds(r.Took)}
	l.Time = r.Time.UTC()
	for _, a := range r.Attempts {
		l.Attempts = append(l.Attempts, attemptLine{a.Code, seconds(a.Took), seconds(a.Waited)})
	}
	if r.Dependency != "" {
		l.Reason = r.Reason.String()
	}
	return l
}

func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }

// openLog opens the log at to: stdout, stderr, none or the path of a file.
func openLog(to string, stdout, stderr io.Writer, say func(any)) (*accessLog, error) {
	a := &accessLog{say: say, records: make(chan proxy.Record, waitingLines), closing: make(chan struct{}), ended: make(chan struct{})}
	switch to {
	case "none":
		return new(accessLog), nil
	case "", "stdout":
		a.out = stdout
	case "stderr":
		a.out = stderr
	default:
		a.out = logFile(to)
		if _, err := a.out.Write(nil); err != nil {
			return nil, fmt.Errorf("log.to: %w", err)
		}
	}
	go a.write()
	return a, nil
}

// A logFile is the path of a file. It is opened for each Write: it may have been moved away.
type logFile string

func (path logFile) Write(p []byte) (int, error) {
	f, err := os.OpenFile(string(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(p)
	return n, errors.Join(err, f.Close())
}

// record is called at the end of each request. It never waits.
func (a *accessLog) record(r *proxy.Record) {
	if a.records == nil {
		return
	}
	select {
	case a.records <- *r:
	default:
		a.lost.Add(1)
	}
}

// close writes what waits, but takes no longer than that.
func (a *accessLog) close(within time.Duration) {
	if a.records == nil {
		return
	}
	close(a.closing)
	select {
	case <-a.ended:
	case <-time.After(within):
	}
}

func (a *accessLog) write() {
	defer close(a.ended)
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	var lines, reported uint64 // in text; that are lost, and a line of the log says so
	failing := false
	flush := func() {
		lost := reported
		if len(a.records) == 0 {
			lost = a.lost.Load()
		}
		if lost > reported {
			_ = to.Encode(map[string]any{"time": time.Now().UTC(), "lost_lines": lost - reported}) // into memory
		}
		_, err := text.WriteTo(a.out)
		if err == nil {
			reported = lost
		} else {
			a.lost.Add(lines)
			text.Reset()
		}
		if err != nil && !failing {
			a.say(fmt.Errorf("the access log cannot be written: %w", err))
		}
		failing, lines = err != nil, 0
	}
	for {
		select {
		case r := <-a.records:
			_ = to.Encode(lineOf(r)) // into memory
			if lines++; len(a.records) == 0 || text.Len() > 64<<10 {
				flush()
			}
		case <-a.closing:
			if len(a.records) == 0 {
				flush()
				return
			}
		}
	}
}
