package report

import (
	"math"
	"strings"
	"testing"
	"time"
)

func texts(ticks []tick) string {
	var all []string
	for _, t := range ticks {
		all = append(all, strings.ReplaceAll(t.Text, nbsp, " "))
	}
	return strings.Join(all, " | ")
}

func TestLinear(t *testing.T) {
	for _, c := range []struct {
		high    float64
		counted bool
		want    string
	}{
		{5200, false, "0 | 2,000 | 4,000 | 6,000"},
		{1000, false, "0 | 200 | 400 | 600 | 800 | 1,000"},
		{0.3, false, "0 | 0.1 | 0.2 | 0.3"},
		{0, false, "0 | 0.2 | 0.4 | 0.6 | 0.8 | 1"},
		{1, true, "0 | 1"},
		{2.5e7, false, "0 | 5 M | 10 M | 15 M | 20 M | 25 M"},
		{math.Inf(-1), false, "0 | 0.2 | 0.4 | 0.6 | 0.8 | 1"},
	} {
		s := linear(c.high, c.counted, number)
		if got := texts(s.Ticks); got != c.want {
			t.Errorf("up to %g: %s, want %s", c.high, got, c.want)
		}
		if c.high > s.Hi || s.Ticks[0].At != 1 || s.Ticks[len(s.Ticks)-1].At != 0 {
			t.Errorf("up to %g: the axis ends at %g, its ticks are %v", c.high, s.Hi, s.Ticks)
		}
	}
}

func TestLogarithmic(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0.073, 1.7, "50 ms | 100 ms | 200 ms | 500 ms | 1 s | 2 s"},
		{0.0021, 29, "10 ms | 100 ms | 1 s | 10 s"},
		{0.1, 0.1, "100 ms | 200 ms"},
		{0.05, 0.1, "50 ms | 100 ms"},
		{1e-5, 2e-5, "10 µs | 20 µs"},
	} {
		s := logarithmic(math.Log10(c.low), math.Log10(c.high), seconds)
		if got := texts(s.Ticks); got != c.want {
			t.Errorf("%g to %g: %s, want %s", c.low, c.high, got, c.want)
		}
		if s.Lo > math.Log10(c.low)+1e-9 || s.Hi < math.Log10(c.high)-1e-9 {
			t.Errorf("%g to %g: the axis goes from %g to %g", c.low, c.high, math.Pow(10, s.Lo), math.Pow(10, s.Hi))
		}
	}
}

func TestThrough(t *testing.T) {
	for horizon, want := range map[time.Duration]string{
		0:                      "",
		200 * time.Millisecond: "0 ms | 50 ms | 100 ms | 150 ms | 200 ms",
		10 * time.Second:       "0 s | 2 s | 4 s | 6 s | 8 s | 10 s",
		120 * time.Second:      "0 s | 30 s | 60 s | 90 s | 120 s",
		600 * time.Second:      "0 s | 120 s | 240 s | 360 s | 480 s | 600 s",
		time.Hour:              "0 min | 15 min | 30 min | 45 min | 60 min",
		24 * time.Hour:         "0 h | 5 h | 10 h | 15 h | 20 h",
		3 * time.Millisecond:   "0 ms | 1 ms | 2 ms | 3 ms",
	} {
		if got := texts(timeTicks(horizon)); got != want {
			t.Errorf("%v: %s, want %s", horizon, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{number(0), "0"}, {number(0.254), "0.25"}, {number(12.34), "12.3"}, {number(4321), "4,321"}, {number(12345), "12.3 k"}, {number(1.25e6), "1.3 M"}, {number(112.5), "113"},
		{number(999_949), "999.9 k"}, {number(999_951), "1 M"}, {number(2e9), "2 G"}, {number(math.NaN()), "–"}, {number(-0.001), "0"},
		{seconds(0), "0 s"}, {seconds(0.00025), "250 µs"}, {seconds(0.0125), "12.5 ms"}, {seconds(1.234), "1.23 s"}, {seconds(432.1), "432 s"},
		{seconds(1205), "20 min 5 s"}, {seconds(7199.9), "120 min"}, {seconds(12000), "3 h 20 min"}, {seconds(0.99951), "1 s"},
		{percent(0.123), "12.3 %"}, {percent(0.99981), "99.98 %"}, {percent(0.999999), "> 99.98 %"}, {percent(1), "100 %"}, {percent(0), "0 %"},
		{percent(1e-6), "< 0.01 %"}, {percent(0.0042), "0.42 %"},
		{whole(12345678), "12,345,678"}, {whole(999), "999"}, {whole(-1234), "-1,234"},
		{ratio(1), "1.000 ×"}, {ratio(4.2853), "4.285 ×"}, {ratio(123.4), "123 ×"},
	} {
		if got := strings.ReplaceAll(c.got, nbsp, " "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
