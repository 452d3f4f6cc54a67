package proxy

import (
	"bufio"
	"encoding/json"
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
	path    string // of a file; empty: it is a stream
	out     io.Writer
	records chan proxy.Record
	again   chan struct{} // the file is to be opened again
	closing chan struct{}
	ended   chan struct{}
}

// line is a Record in the access log.
type line struct {
	Time       time.Time     `json:"time"`
	Door       string        `json:"door,omitempty"`
	Method     string        `json:"method,omitempty"`
	Host       string        `json:"host,omitempty"`
	Path       string        `json:"path,omitempty"`
	Protocol   string        `json:"protocol,omitempty"`
	Status     int           `json:"status,omitempty"`
	BytesIn    int64         `json:"bytes_in"`
	BytesOut   int64         `json:"bytes_out"`
	Seconds    seconds       `json:"seconds"`
	Dependency string        `json:"dependency,omitempty"`
	Operation  string        `json:"operation,omitempty"`
	Attempts   []attemptLine `json:"attempts,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Stale      bool          `json:"stale,omitempty"`
	Own        bool          `json:"own,omitempty"`
	Error      string        `json:"error,omitempty"`
}

type attemptLine struct {
	Code    string  `json:"code,omitempty"`
	Seconds seconds `json:"seconds"`
	Waited  seconds `json:"waited,omitempty"`
}

// seconds has microseconds.
type seconds float64

func secondsOf(d time.Duration) seconds { return seconds(d.Round(time.Microsecond).Seconds()) }

func lineOf(r *proxy.Record) line {
	l := line{
		Time: r.Time.UTC(), Door: r.Door, Method: r.Method, Host: r.Host, Path: r.Path, Protocol: r.Protocol, Status: r.Status,
		BytesIn: r.BytesIn, BytesOut: r.BytesOut, Seconds: secondsOf(r.Took), Dependency: r.Dependency, Operation: r.Operation,
		Stale: r.Stale, Own: r.Own, Error: r.Error,
	}
	for _, a := range r.Attempts {
		l.Attempts = append(l.Attempts, attemptLine{a.Code, secondsOf(a.Took), secondsOf(a.Waited)})
	}
	if r.Dependency != "" {
		l.Reason = r.Reason.String()
	}
	return l
}

// openLog opens the log at to: stdout, stderr, none or the path of a file.
func openLog(to string, stdout, stderr io.Writer, say func(any)) (*accessLog, error) {
	a := &accessLog{say: say, records: make(chan proxy.Record, waitingLines), again: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{})}
	switch to {
	case "none":
		close(a.ended)
		return a, nil
	case "", "stdout":
		a.out = stdout
	case "stderr":
		a.out = stderr
	default:
		f, err := openFile(to)
		if err != nil {
			return nil, fmt.Errorf("log.to: %w", err)
		}
		a.path, a.out = to, f
	}
	go a.write()
	return a, nil
}

func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
}

// record is called at the end of each request. It never waits.
func (a *accessLog) record(r *proxy.Record) {
	if a.out == nil {
		return
	}
	select {
	case a.records <- *r:
	default:
		a.lost.Add(1)
	}
}

// reopen opens the file again, which may have been moved away.
func (a *accessLog) reopen() {
	select {
	case a.again <- struct{}{}:
	default:
	}
}

// close writes what waits, but takes no longer than that.
func (a *accessLog) close(within time.Duration) {
	if a.out == nil {
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
	buffer := bufio.NewWriterSize(a.out, 64<<10)
	to := json.NewEncoder(buffer)
	to.SetEscapeHTML(false)
	var reported, pending uint64 // lost lines; lines in the buffer
	failing := false
	write := func(r proxy.Record) {
		_ = to.Encode(lineOf(&r)) // flush has the error
		pending++
	}
	flush := func() {
		lost := a.lost.Load()
		if lost > reported {
			_ = to.Encode(map[string]any{"time": time.Now().UTC(), "lost_lines": lost - reported})
		}
		err := buffer.Flush()
		if err == nil {
			reported = lost
		} else {
			a.lost.Add(pending)
			buffer.Reset(a.out) // it keeps its first error
		}
		if err != nil && !failing {
			a.say(fmt.Errorf("the access log cannot be written: %w", err))
		}
		failing, pending = err != nil, 0
	}
	for {
		select {
		case r := <-a.records:
			write(r)
			if len(a.records) == 0 {
				flush()
			}
		case <-a.closing:
			for len(a.records) > 0 {
				write(<-a.records)
			}
			flush()
			return
		case <-a.again:
			if a.path == "" {
				continue
			}
			f, err := openFile(a.path)
			if err != nil {
				a.say(fmt.Errorf("log.to: %w", err))
				continue
			}
			flush()
			a.out.(io.Closer).Close()
			a.out = f
			buffer.Reset(f)
		}
	}
}
