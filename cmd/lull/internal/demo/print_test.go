package demo

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
)

// fixedResult is a possible result of a run.
func fixedResult() result {
	return result{
		setting: tenSeconds(), measured: 10 * time.Second, late: lateness{2 * time.Millisecond, 2 * time.Millisecond},
		retriers: []stormFigures{
			{"no retry", 500, 500, 1, 50, 62, 1.24, 0.791, 41.2, 500.1, 2400 * ms},
			{"immediate", 500, 1432, 2.864, 50.2, 412.4, 8.22, 0.2, 1000.4, 1503, never},
			{"fixed interval", 500, 1200, 2.4, 50, 140, 2.8, 0.999, 60, 1702.1, 12100 * ms},
			{"exponential", 12345, 37035, 3, 5000, 15000, 3, 0, 1800, 1804, never},
			{"full jitter", 500, 600, 1.2, 50, 80, 1.6, 1, 60, 900, 0},
			{"lull", 500, 470, 0.94, 50, 66, 1.32, 0.85, 40.5, 731.2, 1600 * ms},
		},
	}
}

// words returns the figures in a line, for tests.
func (p *periodFigures) words() string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%d calls: %s %s %s ms, %v requests, %v worst, %d held back, %v failed",
		p.Calls, cell(p.P50), cell(p.P99), cell(p.P999), p.AttemptsPerCall, p.WorstSecond, p.HeldBack, p.FailureRate)
}

// fixedTail is a possible result of the scenario tail.
func fixedTail() result {
	v := func(v float64) time.Duration { return time.Duration(v * float64(ms)) }
	return result{
		setting: fifteenSeconds(), measured: 15 * time.Second, late: lateness{2 * ms, 2 * ms},
		hedgers: []tailFigures{
			{
				Name: "no hedging", Calls: 750, Attempts: 750,
				Before: &periodFigures{217, v(10.3), v(486.1), v(611), 1, 0, 0, 0},
				Slow:   &periodFigures{150, v(505), v(647.4), v(649), 1, 0, 0, 0},
				After:  &periodFigures{350, v(10.2), v(500), v(640), 1, 0, 0, 0},
				Whole:  &periodFigures{750, v(10.9), v(638), v(649), 1, 0, 0, 0},
				// It sends no second request from the beginning.
				Stopped: 0, CutAgain: never,
			},
			{
				Name: "naive", Calls: 750, Attempts: 900,
				Before: &periodFigures{217, v(10.3), v(32.6), v(33), 1.0201, 0.0612, 0, 0},
				Slow:   &periodFigures{150, v(966.2), never, never, 1.8123, 1.0098, 0, 0.3341},
				After:  &periodFigures{350, v(10.2), v(31.5), never, 1.0233, 0.1098, 0, 0.0021},
				Whole:  &periodFigures{750, v(11.4), never, never, 1.1912, 1.0098, 0, 0.0712},
				// It hedges as before as soon as all is well.
				Stopped: never, CutAgain: v(100),
			},
			{
				Name: "lull", Calls: 750, Attempts: 772,
				Before:  &periodFigures{217, v(10.3), v(23.4), v(521), 1.0412, 0.0812, 4, 0},
				Slow:    &periodFigures{150, v(502), v(647), v(650), 1.0398, 0.0987, 286, 0},
				After:   &periodFigures{350, v(10.4), v(445), v(620), 1.0123, 0.0598, 2, 0},
				Whole:   &periodFigures{750, v(11), v(637), v(649), 1.0269, 0.0987, 292, 0},
				Stopped: v(100), CutAgain: v(8700),
			},
		},
	}
}

func printed(t *testing.T, r result) string {
	t.Helper()
	var out bytes.Buffer
	must.Succeed(printTable(&out, r))
	clitest.Width(t, out.String(), 80)
	return out.String()
}

func TestTables(t *testing.T) {
	onABusyMachine := func(r result) result {
		r.interrupted, r.unfinished, r.dialErrors = true, 31, 4
		return r
	}
	storms := onABusyMachine(fixedResult())
	storms.measured, storms.late, storms.setting.Kind = 3500*ms, lateness{90 * ms}, errors503
	for i := range storms.retriers {
		storms.retriers[i].Recovery = never
	}
	tails := onABusyMachine(fixedTail())
	tails.measured, tails.late = 5500*ms, lateness{30 * ms}
	calm := fixedTail()
	calm.setting.Outage, calm.setting.Tail = 0, 0.015
	for i := range tails.hedgers {
		tails.hedgers[i].After, tails.hedgers[i].CutAgain = nil, never
		f := &calm.hedgers[i]
		*f = tailFigures{Name: f.Name, Calls: f.Calls, Attempts: f.Attempts, Whole: f.Before, Stopped: never, CutAgain: never}
	}
	for file, r := range map[string]result{
		"table": fixedResult(), "interrupted": storms, "tail-table": fixedTail(), "tail-interrupted": tails, "tail-never-slow": calm,
	} {
		golden.File(t, "testdata/"+file+".txt", printed(t, r))
	}
}

// If the whole run is one part, it is printed once.
func TestTailTableOfOnePart(t *testing.T) {
	for _, c := range []struct {
		outage, measured time.Duration
		want, not        string
	}{
		{3 * time.Second, 4 * time.Second, "\nbefore\n", "\nthe whole run\n"},
		{3 * time.Second, 4500 * ms, "\nthe whole run\n", "\nafter\n"}, // some calls are in no part
		{0, 4 * time.Second, "\nthe whole run\n", "\nbefore\n"},
	} {
		r := fixedTail()
		r.setting.Outage, r.measured, r.interrupted = c.outage, c.measured, true
		for i := range r.hedgers {
			f := &r.hedgers[i]
			f.Slow, f.After, f.Stopped, f.CutAgain = nil, nil, never, never
			if c.outage == 0 {
				f.Before = nil
			}
		}
		if got := printed(t, r); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("slow for %v, ended after %v: want %q and not %q in\n%s", c.outage, c.measured, c.want, c.not, got)
		}
	}
}

// The text of the setting fits, for any flags.
func TestTailSettingFits(t *testing.T) {
	for _, args := range [][]string{
		{"--duration=2s"}, {"--duration=7s"}, {"--duration=10m", "--outage=123456ms", "--capacity=2000", "--load=2", "--queue=100000"},
		{"--outage=1234567us", "--tail=0.12345", "--timeout=1234567us", "--hedge-delay=1234567ns", "--seed=18446744073709551615"},
	} {
		clitest.Width(t, settingText(parse(t, append([]string{"--scenario=tail"}, args...)...)), 80)
	}
}

// Findings follow the figures, and favour nobody.
func TestTailFindings(t *testing.T) {
	said := func(r result) string { return strings.Join(tail.findings(r), "\n") }
	for _, c := range []struct {
		name      string
		change    func(none, naive, lull *tailFigures)
		want, not []string
	}{
		{"as usual", func(none, naive, lull *tailFigures) {},
			[]string{"lull 23 ms (1.04), naive 33 ms (1.02), no hedging", "failed: no hedging 0.0%, lull 0.0%,\n  naive 33.4%",
				"286 held back", "but not the second requests of: naive", "It bore those of: lull"}, nil},
		{"lull is the one that does harm", func(none, naive, lull *tailFigures) {
			lull.Slow, naive.Slow = naive.Slow, lull.Slow
			lull.Before, naive.Before = naive.Before, lull.Before
			lull.Stopped, naive.Stopped = naive.Stopped, lull.Stopped
			lull.CutAgain = never
		}, []string{"naive 23 ms (1.04), lull 33 ms (1.02), no hedging", "but not the second requests of: lull", "It bore those of: naive",
			"not stopped for a second,\n  had not cut the tail again"}, nil},
		{"nobody does harm", func(none, naive, lull *tailFigures) { naive.Slow.FailureRate = 0.009 },
			[]string{"and the second requests of: naive, lull"}, []string{"but not"}},
		{"everybody does", func(none, naive, lull *tailFigures) { lull.Slow.FailureRate = 0.4 },
			[]string{"but not the second requests of: naive, lull"}, []string{"It bore"}},
		{"neither little nor much", func(none, naive, lull *tailFigures) { naive.Slow.FailureRate, lull.Slow.FailureRate = 0.03, 0.03 },
			nil, []string{"bore"}},
		{"it could not be borne", func(none, naive, lull *tailFigures) { none.Slow.FailureRate = 0.25 },
			[]string{"could not bear the calls even without hedges, 25.0% of which failed"}, []string{"second requests of"}},
		{"nobody hedged", func(none, naive, lull *tailFigures) {
			naive.Before.AttemptsPerCall, lull.Before.AttemptsPerCall = 1, 1
		}, nil, []string{"meanwhile"}},
		{"p99 is never", func(none, naive, lull *tailFigures) { lull.Before.P99 = never },
			[]string{"naive 33 ms (1.02), no hedging 486 ms (1.00), lull never (1.04)."}, nil},
	} {
		r := fixedTail()
		c.change(&r.hedgers[0], &r.hedgers[1], &r.hedgers[2])
		got := said(r)
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in\n%s", c.name, part, got)
			}
		}
		for _, part := range c.not {
			if strings.Contains(got, part) {
				t.Errorf("%s: %q in\n%s", c.name, part, got)
			}
		}
		clitest.Width(t, got, 80)
	}
	r := fixedTail()
	r.hedgers = r.hedgers[1:]
	if got := said(r); strings.Contains(got, "bore") || !strings.Contains(got, "naive 33.4%") {
		t.Errorf("without the client that does not hedge:\n%s", got)
	}
	r.measured = 7 * time.Second
	if got := said(r); !strings.Contains(got, "too early") {
		t.Errorf("a run cut short:\n%s", got)
	}
}

// fixedSnapshot is a run at 7 s: half a second after the outage the first
// client is well again, the second is not.
func fixedSnapshot() snapshot {
	s := tenSeconds()
	s.Clients = stormClients[:2]
	shot := snapshot{setting: s, now: 7 * time.Second}
	well, ill := laneSnapshot{name: "no retry", queue: 3}, laneSnapshot{name: "immediate", queue: 200}
	add := func(l *laneSnapshot, requests, good, failed int) {
		for what, n := range map[kind]int{begun: 5, seen: requests, succeeded: good, bad: failed} {
			l.counts[what] = append(l.counts[what], n)
		}
	}
	for i := range 70 {
		at := time.Duration(i) * tick
		switch {
		case at >= s.OutageAt && at < s.OutageAt+s.Timeout:
			add(&well, 5, 0, 0)
		case at >= s.OutageAt+s.Timeout && at < s.outageEnd():
			add(&well, 5, 0, 5)
		case at >= s.outageEnd() && at < s.outageEnd()+s.Timeout:
			add(&well, 5, 3, 2)
		default:
			add(&well, 5, 5, 0)
		}
		if at < s.OutageAt {
			add(&ill, 5, 5, 0)
		} else {
			add(&ill, 15, 0, 5)
		}
	}
	shot.lanes = []laneSnapshot{well, ill}
	return shot
}

// fixedTailSnapshot is a run at 10 s: it was slow from 5 s to 8 s, and one client
// hedged all that time.
func fixedTailSnapshot() snapshot {
	s := fifteenSeconds()
	s.Clients = tailClients[1:]
	shot := snapshot{setting: s, now: 10 * time.Second}
	ill, well := laneSnapshot{name: "naive"}, laneSnapshot{name: "lull"}
	for at := time.Duration(0); at < shot.now; at += tick {
		slow := at >= s.OutageAt && at < s.outageEnd()
		for _, l := range []*laneSnapshot{&ill, &well} {
			more, back, failed := 0, 0, 0
			switch {
			case slow && l == &ill:
				more, failed = 5, 2
			case slow:
				back = 5
			case at%time.Second == 0:
				more = 1
			}
			for what, n := range map[kind]int{begun: 5, extra: more, held: back, succeeded: 5 - failed, bad: failed} {
				l.counts[what] = append(l.counts[what], n)
			}
		}
	}
	for at := recentStep; at <= shot.now; at += recentStep {
		b, w := recent{10 * ms, 32 * ms}, recent{10 * ms, 24 * ms}
		if at > s.OutageAt && at <= s.outageEnd()+time.Second {
			b, w = recent{960 * ms, never}, recent{505 * ms, 645 * ms}
		}
		ill.recents, well.recents = append(ill.recents, b), append(well.recents, w)
	}
	shot.lanes = []laneSnapshot{ill, well}
	return shot
}

func TestPictures(t *testing.T) {
	for _, c := range []struct {
		file          string
		shot          snapshot
		now           time.Duration
		columns, rows int
	}{
		{"picture80", fixedSnapshot(), 7 * time.Second, 80, 24},
		{"picture120", fixedSnapshot(), 7 * time.Second, 120, 40},
		{"picture-outage", fixedSnapshot(), 2500 * ms, 80, 24},
		{"tail-picture80", fixedTailSnapshot(), 10 * time.Second, 80, 24},
		{"tail-picture120-slow", fixedTailSnapshot(), 6500 * ms, 120, 40},
	} {
		c.shot.now = c.now
		golden.File(t, "testdata/"+c.file+".txt", strings.Join(draw(c.shot, c.columns, c.rows), "\n")+"\n")
	}
}

func TestPicturesFitWhereTheyAreShown(t *testing.T) {
	for _, shot := range []snapshot{fixedSnapshot(), fixedTailSnapshot()} {
		for _, shot.now = range []time.Duration{0, 50 * ms, time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 6 * time.Second,
			8 * time.Second, 10 * time.Second, 12 * time.Second, 15 * time.Second, 17 * time.Second} {
			for columns := range 200 {
				lines := draw(shot, columns, 24)
				clitest.Width(t, strings.Join(lines, "\n"), max(columns, labelWidth+1))
				if len(lines) != pictureRows(len(shot.lanes))+2 {
					t.Fatalf("%d lines", len(lines))
				}
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
	for file, shot := range map[string]snapshot{"plain": fixedSnapshot(), "tail-plain": fixedTailSnapshot()} {
		var out bytes.Buffer
		p := &plain{out: &out}
		last := shot.now
		for _, shot.now = range []time.Duration{0, 900 * ms, time.Second, 1100 * ms, 4700 * ms, last} {
			p.show(shot)
		}
		p.end(shot)
		golden.File(t, "testdata/"+file+".txt", out.String())
		clitest.Width(t, out.String(), 92)
	}
}

func TestPercentIsAllOrNothingOnlyIfItIs(t *testing.T) {
	for _, c := range []struct {
		part, whole int
		want        string
	}{{0, 0, "-"}, {0, 1000, "0%"}, {1, 1000, "1%"}, {999, 1000, "99%"}, {1000, 1000, "100%"}, {1, 3, "33%"}, {2, 3, "67%"}} {
		check.Equal(t, percent(c.part, c.whole), c.want, "percent(%d, %d)", c.part, c.whole)
	}
}
