package idempotency

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

// Stores keep the encoding for days: it must not change under them.
func TestRecordEncodingIsStable(t *testing.T) {
	for _, test := range []struct {
		rec  Record
		want string
	}{
		{Record{}, "01 00 00 00 00"},
		{Record{BodyOmitted: true}, "01 01 00 00 00"},
		{Record{Status: 201, Body: []byte("hi")}, "01 00 c901 00 02 6869"},
		{Record{Header: http.Header{"A": {strings.Repeat("x", 100)}}}, "01 00 00 01 01 41 01 64 " + strings.Repeat("78", 100) + " 00"},
		{Record{Status: 201, Body: []byte(strings.Repeat("x", 100))}, "01 00 c901 00 64 " + strings.Repeat("78", 100)},
		{Record{Status: 999, Header: http.Header{"B": {"2"}, "A": {"", "1"}}}, "01 00 e707 02 01 41 02 00 01 31 01 42 01 01 32 00"},
	} {
		b := must.Have(test.rec.MarshalBinary())
		want, _ := hex.DecodeString(strings.ReplaceAll(test.want, " ", ""))
		want = binary.BigEndian.AppendUint32(want, crc32.Checksum(want, crc32.MakeTable(crc32.Castagnoli)))
		if got, want := hex.EncodeToString(b), hex.EncodeToString(want); got != want {
			t.Errorf("%+v is encoded as %s, want %s", test.rec, got, want)
		}
		var back Record
		if err := back.UnmarshalBinary(b); err != nil || !same(back, test.rec) {
			t.Errorf("%+v came back as %+v, %v", test.rec, back, err)
		}
	}
}

func same(a, b Record) bool {
	return a.Status == b.Status && a.BodyOmitted == b.BodyOmitted && bytes.Equal(a.Body, b.Body) &&
		maps.EqualFunc(a.Header, b.Header, func(x, y []string) bool { return len(x) == 0 && len(y) == 0 || reflect.DeepEqual(x, y) })
}

func TestRecordStatus(t *testing.T) {
	for _, status := range []int{-1, 1, 99, 1000, 1 << 40} {
		if _, err := (Record{Status: status}).MarshalBinary(); err == nil || !strings.Contains(err.Error(), "Status") {
			t.Errorf("a record of status %d: %v", status, err)
		}
	}
	for _, status := range []int{0, 100, 999} {
		b, err := (Record{Status: status}).MarshalBinary()
		var back Record
		if err != nil || back.UnmarshalBinary(b) != nil || back.Status != status || back.Header != nil {
			t.Errorf("a record of status %d: %v, read as %d", status, err, back.Status)
		}
	}
}

func TestDamagedRecords(t *testing.T) {
	whole := must.Have(Record{Status: 201, Header: http.Header{"A": {"1", "2"}, "B": {"3"}}, Body: []byte("body")}.MarshalBinary())
	refused := func(what string, b []byte) {
		t.Helper()
		r := Record{Status: 200}
		if err := r.UnmarshalBinary(b); err == nil || r.Status != 200 {
			t.Errorf("%s (% x) is taken for a record: %+v", what, b, r)
		}
	}
	for n := range whole {
		refused("a record that is cut off", whole[:n])
	}
	refused("a record with something after it", append(whole[:len(whole):len(whole)], 0))
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			refused("a record with another bit", b)
		}
	}
	for what, b := range map[string][]byte{
		"version 0":                 {0, 0, 0, 0, 0},
		"version 2":                 {2, 0, 0, 0, 0},
		"an unknown flag":           {1, 2, 0, 0, 0},
		"status 99":                 {1, 0, 99, 0, 0},
		"status 1000":               {1, 0, 0xe8, 7, 0, 0},
		"status beyond int":         {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0},
		"a varint with a zero":      {1, 0, 0x80, 0, 0, 0},
		"a varint without end":      {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"more fields than bytes":    {1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xf, 0},
		"more values than bytes":    {1, 0, 0, 1, 1, 'A', 0xff, 0xff, 3, 0},
		"names out of order":        {1, 0, 0, 2, 1, 'B', 0, 1, 'A', 0, 0},
		"a name twice":              {1, 0, 0, 2, 1, 'A', 0, 1, 'A', 0, 0},
		"a body longer than it is":  {1, 0, 0, 0, 5, 'a'},
		"a body that is not there":  {1, 0, 0, 0, 5},
		"a body shorter than it is": {1, 0, 0, 0, 1, 'a', 'b'},
	} {
		refused(what, seal(b))
	}
	if err := new(Record).UnmarshalBinary(seal([]byte{1, 0, 0, 0, 0})); err != nil {
		t.Errorf("the shortest record: %v", err) // or the others are refused for their checksum
	}
}

func FuzzRecord(f *testing.F) {
	for _, r := range []Record{{}, {BodyOmitted: true}, {Status: 200, Body: []byte("x")}, {Status: 404, Header: http.Header{"A": {"1", ""}, "B": nil}}} {
		b, _ := r.MarshalBinary()
		f.Add(b[:len(b)-sumSize])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = seal(data)
		var r Record
		if err := r.UnmarshalBinary(data); err != nil {
			if r.Status != 0 || r.Header != nil || r.Body != nil || r.BodyOmitted {
				t.Errorf("% x is refused, and changes the record", data)
			}
			return
		}
		b, err := r.MarshalBinary()
		if err != nil || !bytes.Equal(b, data) {
			t.Errorf("% x is read as %+v and written as % x, %v", data, r, b, err)
		}
	})
}
