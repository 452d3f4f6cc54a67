package estimate

import (
	"math"
	"strconv"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/pretty"
)

// digits rounds v to n significant digits.
func digits(v float64, n int) float64 { return rounded(v, n, 0) }

// rounded rounds v to n significant digits: up, down, or to the nearest.
func rounded(v float64, n, direction int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	power := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	scaled := v * math.Pow10(power)
	switch near := math.Round(scaled); {
	case direction == 0 || math.Abs(scaled-near) < 1e-9*math.Abs(scaled):
		scaled = near
	case direction < 0:
		scaled = math.Floor(scaled)
	default:
		scaled = math.Ceil(scaled)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(scaled/math.Pow10(power), 'g', n, 64), 64)
	return rounded
}

// number, share and duration write the end of an interval as a file has it, rounded down, up, or (0) to the nearest.
func number(v float64, direction int) string {
	return strconv.FormatFloat(rounded(v, 4, direction), 'f', -1, 64)
}

func share(v float64, direction int) string {
	return strconv.FormatFloat(rounded(min(v, 1)*100, 3, direction), 'f', -1, 64) + "%"
}

func duration(v float64, direction int) string {
	return pretty.Duration(time.Duration(math.Round(rounded(min(max(v, 0), 1e9), 3, direction) * 1e9)))
}

// seconds is a number of seconds with so many digits.
func seconds(v float64, n int) time.Duration {
	return time.Duration(math.Round(digits(max(v, 0), n) * 1e9))
}

// whole writes a count for people: 12,345.
func whole(v float64) string {
	s := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// moment writes a time of the world, exact to a millisecond.
func moment(at float64) string {
	return pretty.Duration(time.Duration(math.Round(max(at, 0)*1e3)) * time.Millisecond)
}

// rate writes requests a second for people.
func rate(a float64) string {
	switch {
	case a < 1.0/60:
		return number(3600*a, 0) + " requests an hour"
	case a < 1:
		return number(60*a, 0) + " requests a minute"
	}
	return number(a, 0) + " requests a second"
}

// clock writes a time of the world, in seconds, as the time of day.
func (e *estimator) clock(at float64) string {
	layout := choice.Either(e.w.Scenario.Horizon > 12*time.Hour, "2006-01-02 15:04:05 UTC", "15:04:05 UTC")
	return e.zero.Add(time.Duration(at * 1e9)).Round(time.Second).UTC().Format(layout)
}

// plain are the fields of questions in words.
var plain = map[string]string{
	"processes":   "how many processes call %s",
	"ramp":        "how many calls of %s began in the incident",
	"workers":     "how many requests %s works on at a time",
	"limit":       "how many requests can wait for %s",
	"cancel_work": "whether %s works on for callers that have gone",
	"faults":      "what exactly happened to %s",
	"errors":      "what share of the attempts of %s fails",
	"time":        "how long the slowest requests of %s take",
}
