package source

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/cmd/lull/internal/learn/observed"
)

// exposition is a dump of a client's metrics every 15 s: 10 requests a second of 20 ms, of which one in ten is a 503, until it is
// started anew after a minute.
func exposition(metric string, stamp func(second int) string) string {
	var out strings.Builder
	for second := 0; second <= 120; second += 15 {
		n := 10 * second
		if second > 60 {
			n = 10 * (second - 60)
		}
		for _, code := range []string{"200", "503"} {
			m := n * 9 / 10
			if code == "503" {
				m = n / 10
			}
			if m == 0 && code == "503" {
				continue // there was none yet
			}
			l := fmt.Sprintf(`server_address="db.internal",http_response_status_code=%q,instance="a"`, code)
			for _, b := range []struct {
				le string
				n  int
			}{{"0.01", 0}, {"0.025", m}, {"0.1", m}, {"+Inf", m}} {
				fmt.Fprintf(&out, "%s_bucket{%s,le=%q} %d%s\n", metric, l, b.le, b.n, stamp(second))
			}
			fmt.Fprintf(&out, "%s_sum{%s} %g%s\n%s_count{%s} %d%s\n", metric, l, float64(m)*.02, stamp(second), metric, l, m, stamp(second))
		}
	}
	return out.String()
}

const noon = 1795953600 // 2026-11-29 12:00 UTC

// What counters grow by between two samples is counted in the steps between them. A counter that begins at 0 again has counted since
// then, and one that is new was 0 before.
func TestPrometheusText(t *testing.T) {
	for name, stamp := range map[string]func(int) string{
		"prometheus":  func(s int) string { return fmt.Sprintf(" %d000", noon+s) },
		"openmetrics": func(s int) string { return fmt.Sprintf(" %d.0", noon+s) },
	} {
		d := mustRead(t, "# TYPE x histogram\n"+exposition("http_client_request_duration_seconds", stamp)+"# EOF", Options{})
		s := find(t, d, observed.Attempts, "service-1", "")
		n, mean := total(s)
		if len(s.Points) != 8 || s.Step != 15*time.Second || n != "map[200:1080 503:120]" || math.Abs(mean-.02) > 1e-9 {
			t.Errorf("%s: %d points of %v, %v, mean %v", name, len(s.Points), s.Step, n, mean)
		}
		if p := s.Points[4]; p.Missing || math.Abs(p.Ended["503"].N-15) > 1e-9 || p.Ended["200"].Counts[1] != p.Ended["200"].N || p.Began != -1 {
			t.Errorf("after the restart: %+v", p.Ended["503"])
		}
		if fmt.Sprint(s.Edges) != "[0.01 0.025 0.1]" || s.Exact || s.Processes != 1 {
			t.Errorf("edges %v, processes %d", s.Edges, s.Processes)
		}
		const want = "2× line 0: a counter began at 0 again: a process was started anew, and what it counted between the last sample and that is not known"
		if p := problems(d); p != want {
			t.Errorf("%s: %s", name, p)
		}
	}
}
