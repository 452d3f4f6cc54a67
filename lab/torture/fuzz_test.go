package torture

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"
)

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{"1\tok\t200", "2\tfailed\t0\tno route", "ready", "-1\tok", "\t\t", "1\tok\tx\ty\tz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		id, o, ok := parseAnswer(line)
		if ok && (id < 0 || o.OK != strings.Contains(line, "\tok")) && !strings.Contains(line, "failed") {
			t.Errorf("%q is call %d, %+v", line, id, o)
		}
	})
}

func FuzzReadJSON(f *testing.F) {
	f.Add([]byte(`{"cards": [{"client": "a", "results": [{"case": "status-503", "group": "statuses", "verdict": {"grade": "pass", "why": "because"}, "events": [{"at": 1, "call": 0, "text": "x"}]}]}]}`))
	f.Add([]byte(`{"cards": [null]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		cards, err := ReadJSON(bytes.NewReader(b))
		if err != nil {
			return
		}
		var page, again bytes.Buffer
		if err := WritePage(&page, cards); err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(&again, cards); err != nil {
			return // a date that JSON cannot hold
		}
		if _, err := ReadJSON(&again); err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
	})
}

func FuzzAddress(f *testing.F) {
	f.Add("/t/status-503/r1/7", "{imf+3}")
	f.Add("/t///-1/99999999999999999999", "a{epoch-3}b")
	f.Fuzz(func(t *testing.T, path, value string) {
		if call, depth := place(path); call < 0 || depth < 0 {
			t.Errorf("%q is call %d at depth %d", path, call, depth)
		}
		dated(value, time.Unix(1_000_000_000, 0))
	})
}

// Whatever a client sends in frames, the server goes on or ends the connection.
func FuzzFrames(f *testing.F) {
	begin := preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	f.Add([]byte(begin+"\x00\x00\x01\x01\x05\x00\x00\x00\x01\x82"), uint8(0))
	f.Add([]byte(begin+"\x00\x00\x01\x01\x04\x00\x00\x00\x01\x82\x00\x00\x02\x00\x01\x00\x00\x00\x01ab"), uint8(1))
	f.Add([]byte(begin+"\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x08"), uint8(2))
	faults := []*fault{nil, frameRefuse, frameInternal}
	f.Fuzz(func(t *testing.T, b []byte, which uint8) {
		client, server := net.Pipe()
		s := &site{c: Case{script: []answer{{status: 200, fault: faults[int(which)%len(faults)]}}}, log: newLog(100, func() {})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer server.Close()
			(&framer{site: s, conn: server, number: 1, streams: map[uint32]*stream{}}).serve()
		}()
		go func() {
			buffer := make([]byte, 1<<12)
			for {
				if _, err := client.Read(buffer); err != nil {
					return
				}
			}
		}()
		client.Write(b)
		client.Close()
		<-done
	})
}
