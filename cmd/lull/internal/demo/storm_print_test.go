package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/golden"
)

// fixedResult is a possible result of a run.
func fixedResult() result {
	ms := func(v float64) *float64 { return &v }
	return result{
		setting: tenSeconds(), measured: 10 * time.Second, late: lateness{ms2, ms2},
		retriers: []stormFigures{
			{"no retry", 500, 500, 1, 50, 62, 1.24, 0.791, 41.2, 500.1, ms(2400)},
			{"immediate", 500, 1432, 2.864, 50.2, 412.4, 8.22, 0.2, 1000.4, 1503, nil},
			{"fixed interval", 500, 1200, 2.4, 50, 140, 2.8, 0.999, 60, 1702.1, ms(12100)},
			{"exponential", 12345, 37035, 3, 5000, 15000, 3, 0, 1800, 1804, nil},
			{"full jitter", 500, 600, 1.2, 50, 80, 1.6, 1, 60, 900, ms(0)},
			{"lull", 500, 470, 0.94, 50, 66, 1.32, 0.85, 40.5, 731.2, ms(1600)},
		},
	}
}

const ms2 = 2 * time.Millisecond

func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := printTable(&out, fixedResult()); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/table.txt", out.String())
	clitest.Width(t, out.String(), 80)
}

func TestTableOfAnInterruptedRunOnABusyMachine(t *testing.T) {
	r := fixedResult()
	r.interrupted, r.measured, r.unfinished, r.dialErrors = true, 3500*ms, 31, 4
	r.late = lateness{90 * ms}
	r.setting.Kind = errors503
	for i := range r.retriers {
		r.retriers[i].Recovery = nil
	}
	var out bytes.Buffer
	if err := printTable(&out, r); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/interrupted.txt", out.String())
	clitest.Width(t, out.String(), 80)
}

// fixedSnapshot is a run at 7 s: half a second after the outage the first
// client is well again, the second is not.
func fixedSnapshot() snapshot {
	s := tenSeconds()
	s.Clients = stormClients[:2]
	shot := snapshot{setting: s, now: 7 * time.Second}
	well, ill := laneSnapshot{name: "no retry", calls: 350, queue: 3}, laneSnapshot{name: "immediate", calls: 350, queue: 200}
	for i := range 70 {
		at := time.Duration(i) * tick
		good, bad := 5, 0
		switch {
		case at >= s.OutageAt && at < s.OutageAt+s.Timeout:
			good = 0
		case at >= s.OutageAt+s.Timeout && at < s.outageEnd():
			good, bad = 0, 5
		case at >= s.outageEnd() && at < s.outageEnd()+s.Timeout:
			good, bad = 3, 2
		}
		well.seen, well.succeeded, well.bad = append(well.seen, 5), append(well.succeeded, good), append(well.bad, bad)
		if at < s.OutageAt {
			ill.seen, ill.succeeded, ill.bad = append(ill.seen, 5), append(ill.succeeded, 5), append(ill.bad, 0)
		} else {
			ill.seen, ill.succeeded, ill.bad = append(ill.seen, 15), append(ill.succeeded, 0), append(ill.bad, 5)
		}
	}
	shot.lanes = []laneSnapshot{well, ill}
	return shot
}

func TestPicture(t *testing.T) {
	shot := fixedSnapshot()
	golden.File(t, "testdata/picture80.txt", strings.Join(draw(shot, 80, 24), "\n")+"\n")
	golden.File(t, "testdata/picture120.txt", strings.Join(draw(shot, 120, 40), "\n")+"\n")
	shot.now = 2500 * ms
	golden.File(t, "testdata/picture-outage.txt", strings.Join(draw(shot, 80, 24), "\n")+"\n")
}

func TestPictureFitsWhereItIsShown(t *testing.T) {
	for _, now := range []time.Duration{0, 50 * ms, time.Second, 2 * time.Second, 3 * time.Second, 10 * time.Second, 12 * time.Second} {
		for columns := range 200 {
			shot := fixedSnapshot()
			shot.now = now
			lines := draw(shot, columns, 24)
			clitest.Width(t, strings.Join(lines, "\n"), max(columns, labelWidth+1))
			if len(lines) != pictureRows(len(shot.lanes))+2 {
				t.Fatalf("%d lines", len(lines))
			}
		}
	}
}

func TestPictureRestoresTheScreen(t *testing.T) {
	var out bytes.Buffer
	p := &picture{out: &out, size: func() (int, int) { return 80, 24 }}
	p.show(fixedSnapshot())
	p.show(fixedSnapshot())
	p.end(fixedSnapshot())
	if n := strings.Count(out.String(), term.EnterScreen); n != 1 || strings.Count(out.String(), term.LeaveScreen) != 1 {
		t.Errorf("entered the screen %d times, left it %d times; want once each", n, strings.Count(out.String(), term.LeaveScreen))
	}
	if after := out.String()[strings.Index(out.String(), term.LeaveScreen):]; !strings.Contains(after, "immediate") {
		t.Error("the last picture was not left behind")
	}
}

func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	p := &plain{out: &out}
	shot := fixedSnapshot()
	for _, now := range []time.Duration{0, 900 * ms, time.Second, 1100 * ms, 4700 * ms, 7 * time.Second} {
		shot.now = now
		p.show(shot)
	}
	p.end(shot)
	golden.File(t, "testdata/plain.txt", out.String())
	clitest.Width(t, out.String(), 92)
}

func TestPercentIsAllOrNothingOnlyIfItIs(t *testing.T) {
	for _, c := range []struct {
		part, whole int
		want        string
	}{{0, 0, "-"}, {0, 1000, "0%"}, {1, 1000, "1%"}, {999, 1000, "99%"}, {1000, 1000, "100%"}, {1, 3, "33%"}, {2, 3, "67%"}} {
		if got := percent(c.part, c.whole); got != c.want {
			t.Errorf("percent(%d, %d) = %s, want %s", c.part, c.whole, got, c.want)
		}
	}
}
