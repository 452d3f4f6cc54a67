package scenario

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Interval returns the numbers between which the value at path lies. It reports false if they are not known, or no numbers.
func (l *Learned) Interval(path string) (low, high float64, ok bool) {
	for _, v := range l.Values {
		if v.Path == path {
			low, known := Number(v.Low)
			high, too := Number(v.High)
			return low, high, known && too
		}
	}
	return 0, 0, false
}

// Asks returns the question about the value at path, "" if there is none.
func (l *Learned) Asks(path string) string {
	for _, q := range l.Unknown {
		if q.Path == path {
			if q.Needs != "" {
				return q.Ask + " (it takes " + q.Needs + ")"
			}
			return q.Ask
		}
	}
	return ""
}

// Fact returns what was seen of something; nil if it was not.
func (l *Learned) Fact(what string) *Fact {
	for i := range l.Seen {
		if l.Seen[i].What == what {
			return &l.Seen[i]
		}
	}
	return nil
}

// Time returns the middle of a time that was seen, with two digits, or its lower bound if it has no near upper one; 0 if it was not.
func (l *Learned) Time(what string) time.Duration {
	seen := l.Fact(what)
	if seen == nil {
		return 0
	}
	low, err := time.ParseDuration(seen.Low)
	if err != nil || low <= 0 {
		return 0
	}
	middle := float64(low)
	if high, err := time.ParseDuration(seen.High); err == nil && high >= low && high < 2*low {
		middle = math.Sqrt(float64(low) * float64(high))
	}
	unit := math.Pow(10, math.Floor(math.Log10(middle))-1)
	return time.Duration(math.Round(middle/unit) * unit)
}

// Number reads a number or a share as files have them.
func Number(text string) (float64, bool) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(digits), ",", ""), 64)
	if percent {
		v /= 100
	}
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}
