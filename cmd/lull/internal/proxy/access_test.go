package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/server/proxy"
)

// A disk writes when it is allowed to.
type disk struct {
	bytes.Buffer
	blocked chan struct{} // nil: it is quick
	err     error
}

func (d *disk) Write(p []byte) (int, error) {
	if d.blocked != nil {
		<-d.blocked
	}
	if d.err != nil {
		return 0, d.err
	}
	return d.Buffer.Write(p)
}

func quietly(any) {}

func TestALineHasTheRequestWithItsAttempts(t *testing.T) {
	var out disk
	log := must.Have(openLog("", &out, io.Discard, quietly))
	log.record(&proxy.Record{
		Time: time.Date(2026, 11, 29, 15, 0, 0, 0, time.UTC), Took: 1500 * time.Millisecond, Door: "payments", Method: "POST", Host: "a", Path: "/<charges>\n", Protocol: "HTTP/1.1",
		Status: 503, BytesIn: 3, BytesOut: 4, Dependency: "charges", Operation: "POST /charges", Reason: engine.BudgetExhausted, Own: true, Error: "full",
		Attempts: []proxy.Attempt{{Code: "503", Took: time.Second, Waited: 100 * time.Millisecond}, {Code: "503", Took: 400 * time.Millisecond}},
	})
	log.close(time.Minute)
	if want := `{"time":"2026-11-29T15:00:00Z","door":"payments","method":"POST","host":"a","path":"/<charges>\n","protocol":"HTTP/1.1","status":503,"bytes_in":3,"bytes_out":4,` +
		`"dependency":"charges","operation":"POST /charges","own":true,"error":"full","seconds":1.5,"attempts":[{"code":"503","seconds":1,"waited":0.1},{"code":"503","seconds":0.4}],"reason":"budget_exhausted"}` + "\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

// Requests do not wait for a slow disk. Lines without room are lost, and counted where they would stand.
func TestASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := disk{blocked: make(chan struct{})}
		log := must.Have(openLog("stdout", &out, io.Discard, quietly))
		log.record(&proxy.Record{Path: "/first"})
		synctest.Wait() // the disk has it
		for range waitingLines + 10 {
			log.record(&proxy.Record{Path: "/next"})
		}
		if lost := log.lost.Load(); lost != 10 {
			t.Errorf("%d lost, want 10", lost)
		}
		close(out.blocked)
		log.close(time.Minute)
		var last map[string]any
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		must.Succeed(json.Unmarshal([]byte(lines[len(lines)-1]), &last))
		if len(lines) != 1+waitingLines+1 || !reflect.DeepEqual(last["lost_lines"], 10.0) {
			t.Errorf("%d lines, the last is %v", len(lines), last)
		}
	})
}

// The end does not wait for a disk that is stuck, and requests that end later do no harm.
func TestAStuckDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := disk{blocked: make(chan struct{})}
		log := must.Have(openLog("stderr", io.Discard, &out, quietly))
		log.record(&proxy.Record{})
		log.close(time.Second)
		log.record(&proxy.Record{})
		close(out.blocked)
	})
}

func TestAFullDiskIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := disk{err: errors.New("full")}
		var said []any
		log := must.Have(openLog("", &out, io.Discard, func(what any) { said = append(said, what) }))
		for range 3 {
			log.record(&proxy.Record{})
			synctest.Wait()
		}
		if len(said) != 1 || log.lost.Load() != 3 {
			t.Errorf("said %q, %d lines lost", said, log.lost.Load())
		}
		out.err = nil
		log.record(&proxy.Record{Path: "/again"})
		log.close(time.Minute)
		if !strings.Contains(out.String(), "/again") || !strings.Contains(out.String(), `"lost_lines":3`) {
			t.Errorf("got %s", &out)
		}
	})
}
