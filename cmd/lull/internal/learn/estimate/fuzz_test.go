package estimate

import (
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
	"github.com/lullgo/lull/lab/scenario"
)

// Whatever was measured, a world of it is valid, and nothing panics.
func FuzzMake(f *testing.F) {
	f.Add([]byte("\x00\x40\x09some steps, of which each byte is a few requests with a status and a time..............................................."))
	f.Add([]byte("\x07\xff\x00zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\x00\x00\x00\x00zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"))
	f.Add([]byte("\x05\x20\x33yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\x01\x02\x03\x04\x05\x06\x07\x08yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"))
	codes := []string{"200", "503", "timeout", "refused", "499", "404", "502", "canceled"}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 4 || len(data) > 2000 {
			return
		}
		flags, times, mix := data[0], float64(data[1])+1, data[2]
		d := &observed.Data{}
		sides := int(flags&3) + 1
		for k := range sides {
			s := &observed.Series{Side: observed.Side(k % 3), Start: noon.Add(time.Duration(k*int(mix)) * time.Second), Step: time.Second, Edges: buckets, Exact: flags&4 != 0, Processes: int(mix % 3)}
			if flags&8 != 0 {
				s.Host = string(rune('a' + k))
				s.Side = observed.Served
			}
			if flags&16 != 0 {
				s.Service = string(rune('a' + k))
			}
			for i, b := range data[3:] {
				p := observed.Point{Ended: map[string]*observed.Bars{}, Began: float64(int(b)-1) * times, Retries: float64(int(b&15) - 1), Missing: b == 0xff}
				if flags&32 != 0 {
					p.Began, p.Retries = -1, -1
				}
				for j := range int(b>>5) + 1 {
					bars := &observed.Bars{}
					for range int(b&31) * int(times) / 16 {
						addTime(bars, s.Edges, 0.003*float64(1+(int(b)*i*(j+k+1))%int(times*40)))
					}
					if b&1 != 0 && flags&64 != 0 {
						bars.Counts = nil
					}
					p.Ended[codes[(j*int(mix)+int(b>>6))%len(codes)]] = bars
				}
				s.Points = append(s.Points, p)
			}
			d.Series = append(d.Series, s)
		}
		w, err := Make(d)
		if err != nil {
			return
		}
		text, err := scenario.FormatLearned(w.Scenario, w.Learned)
		if err == nil {
			_, _, err = scenario.ParseLearned("world", text)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	})
}
