package config

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/throttle"
)

// bounds are what a number or a duration may be whatever else a file has: zero, or from least to most.
// Durations are in nanoseconds, as in Go. An empty bound is that of the type.
type bounds struct {
	least, most string
	negative    bool   // below zero anything is allowed; it has a meaning of its own
	also        string // another value that is allowed, as it is written
}

const (
	// microseconds100 is problem.ShortestDuration.
	microseconds100 = "100000"
	hour            = "3600000000000"
	// tiny is less than any number that is not zero.
	tiny = "0"
)

// positive durations have not lost their unit.
var positive = bounds{least: microseconds100}

// ranges are the bounds of fields, by type and name. Module lab/schematest holds them
// against the reader, on both sides of each.
var ranges = map[reflect.Type]map[string]bounds{
	reflect.TypeFor[lull.Policy](): {
		"Attempts":       {least: "1", most: "1000"},
		"AttemptTimeout": {least: microseconds100, also: "-1ns"}, "Deadline": {least: microseconds100, also: "-1ns"},
		"RateLimitedBase": {least: microseconds100, also: "1ns"}, "HintLimit": {least: microseconds100, also: "1ns"},
	},
	reflect.TypeFor[backoff.Schedule](): {
		"Base": {least: tiny}, // Ethernet's slots are shorter than any other wait
		"Cap":  positive, "Floor": positive, "Factor": {least: "1"},
	},
	reflect.TypeFor[budget.Config](): {
		"Ratio": {least: "0.00001", most: "4"}, "Window": {least: "100000000", most: hour},
		"Floor": {least: tiny, most: "1000000"}, "Cooldown": positive, "Stock": {least: tiny, most: "1000000"},
	},
	reflect.TypeFor[breaker.Config](): {
		"ConsecutiveFor": {least: microseconds100, negative: true},
		"FailureRate":    {least: tiny, most: "1"}, "SlowRate": {least: tiny, most: "1"}, "SlowCall": positive,
		"MinCalls": {least: "1"}, "Window": {least: "1000000"}, "OpenFor": positive, "OpenMax": positive,
		"OpenJitter": {least: tiny, most: "10", negative: true}, "Probes": {least: "1", most: "1000"}, "ProbeTimeout": positive,
	},
	reflect.TypeFor[hedge.Config](): {
		"Attempts": {least: "1", most: "5"}, "Delay": {least: microseconds100, also: "-1ns"},
		"Percentile": {least: "0.5", most: "0.999"}, "Window": {least: "1000000000", most: hour},
		"MinSamples": {least: "1", most: "1000000"}, "MinDelay": positive, "MaxDelay": positive,
		"Share": {least: tiny, most: "4", negative: true},
	},
	reflect.TypeFor[throttle.Config](): {
		"Window": {least: "1000000000"}, "K": {least: "1.05", most: "1000"}, "MinRequests": {least: "1"}, "Recent": positive,
		"ProbeEvery": {least: microseconds100, negative: true}, "MinRate": {least: "0.001", most: "1000000"},
		"FallEvery": {least: microseconds100, negative: true}, "MaxWait": {least: microseconds100, negative: true},
	},
	reflect.TypeFor[bulkhead.Config](): {
		"InFlight": {least: "1", most: "2147483647"}, "MaxWait": positive, "MaxQueue": {least: "1", most: "2147483647"},
	},
	reflect.TypeFor[Dependency](): {"P99": {least: tiny}, "Rate": {least: tiny}},
	reflect.TypeFor[Operation]():  {"P99": {least: tiny}},
	reflect.TypeFor[Service]():    {"SLO": {least: tiny}, "Handler": {least: tiny}, "Visibility": {least: tiny}, "Deliveries": {least: "1", most: "1000"}},
	reflect.TypeFor[Edge]():       {"Times": {least: "1", most: "10000"}},
}

// maxInt64 bounds whole numbers.
const maxInt64 = "9223372036854775807"

// A unit is what may follow the digits of a text, as a pattern, and its size.
type unit struct {
	pattern string
	size    *big.Rat
}

func unitsOf(t reflect.Type, f codec.Form) []unit {
	rat := func(text string) *big.Rat { r, _ := new(big.Rat).SetString(text); return r }
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return []unit{{"ns", rat("1")}, {"(us|µs|μs)", rat("1e3")}, {"ms", rat("1e6")}, {"s", rat("1e9")}, {"m", rat("6e10")}, {"h", rat("3.6e12")}}
	case f == codec.Share:
		return []unit{{"", rat("1")}, {" *%", rat("0.01")}}
	}
	return []unit{{"", rat("1")}, {" *k", rat("1e3")}, {" *M", rat("1e6")}, {" *G", rat("1e9")}}
}

// rangedSchema is that of a number or a duration within bounds: zero in any spelling, a value of JSON, or
// a text that has the form and is not out of bounds.
func rangedSchema(t reflect.Type, f codec.Form, b bounds) object {
	number, pattern, zero := object{"type": "number"}, numberPattern, `^-?(0|0?\.0+|0\.0+)( *[kMG]|[eE][-+]?[0-9]+)?$`
	switch {
	case t == reflect.TypeFor[time.Duration]():
		number, pattern, zero = nil, "^"+durationPattern+"$", `^[-+]?(0|((0+(\.0*)?|\.0+)(ns|us|µs|μs|ms|s|m|h))+)$`
		if word := f.Word(); word != "" {
			pattern = "^(" + word + "|" + durationPattern + ")$"
		}
	case t.Kind() == reflect.Int:
		number["type"], pattern = "integer", integerPattern()
	case f == codec.Share:
		pattern, zero = sharePattern, `^-?(0|0?\.0+|0\.0+)( *%|[eE][-+]?[0-9]+)?$`
		number["maximum"] = 1
	}
	text := object{"type": "string", "pattern": pattern}
	if out := outside(b, unitsOf(t, f), t == reflect.TypeFor[time.Duration]()); len(out) > 0 {
		text["not"] = object{"pattern": "^(" + strings.Join(out, "|") + ")"}
	}
	some := []any{object{"const": 0}, text, object{"type": "string", "pattern": zero}}
	if number != nil {
		if b.least != "" && !b.negative {
			number["minimum"] = json.Number(b.least)
		}
		switch {
		case b.most != "" && (f != codec.Share || b.most[0] == '0'):
			number["maximum"] = json.Number(b.most)
		case t.Kind() == reflect.Int && b.most == "":
			number["maximum"] = json.Number(maxInt64)
		}
		some = append(some, number)
	}
	if b.also != "" {
		some = append(some, object{"const": b.also})
	}
	return object{"anyOf": some}
}

// outside returns patterns of the texts that are out of bounds: a decimal and a unit. Texts with several
// units or an exponent are not among them.
func outside(b bounds, units []unit, signed bool) (all []string) {
	sign := ""
	if signed {
		sign = `\+?0*` // durations may have zeros in front
	}
	if b.least != "" && !b.negative {
		all = append(all, "-")
	}
	for _, u := range units {
		var digits []string
		if b.most != "" {
			digits = above(quotient(b.most, u.size))
		}
		if b.least != "" && b.least != tiny {
			digits = append(digits, below(quotient(b.least, u.size))...)
		}
		if len(digits) > 0 {
			all = append(all, sign+"("+strings.Join(digits, "|")+")"+u.pattern+"$")
		}
	}
	return all
}

// quotient returns bound / size as a decimal; empty if it has no end.
func quotient(bound string, size *big.Rat) string {
	r, ok := new(big.Rat).SetString(bound)
	if !ok {
		panic(bound)
	}
	text := r.Quo(r, size).FloatString(30)
	if exact, _ := new(big.Rat).SetString(text); exact.Cmp(r) != 0 {
		return ""
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// above returns patterns of the decimals that are greater than bound.
func above(bound string) []string {
	if bound == "" {
		return nil
	}
	whole, fraction, _ := strings.Cut(bound, ".")
	const rest = `(\.[0-9]*)?`
	all := []string{fmt.Sprintf(`[1-9](_?[0-9]){%d,}`, len(whole)) + rest}
	for i, d := range whole {
		if d < '9' {
			all = append(all, grouped(whole[:i])+fmt.Sprintf(`[%c-9]%s`, d+1, more(len(whole)-i-1))+rest)
		}
	}
	for i, d := range fraction {
		if d < '9' {
			all = append(all, wholePart(whole)+`\.`+fraction[:i]+fmt.Sprintf("[%c-9][0-9]*", d+1))
		}
	}
	return append(all, wholePart(whole)+`\.`+fraction+"0*[1-9][0-9]*")
}

// below returns patterns of the decimals that are less than bound, zero among them.
func below(bound string) []string {
	if bound == "" {
		return nil
	}
	whole, fraction, _ := strings.Cut(bound, ".")
	const rest = `(\.[0-9]*)?`
	var all []string
	if len(whole) > 1 {
		all = append(all, fmt.Sprintf(`([0-9](_?[0-9]){0,%d})?`, len(whole)-2)+rest)
	}
	for i, d := range whole {
		if low := '0'; d > low {
			if i == 0 && len(whole) > 1 {
				low = '1' // fewer digits are above
			}
			if d > low {
				all = append(all, grouped(whole[:i])+fmt.Sprintf(`[%c-%c]%s`, low, d-1, more(len(whole)-i-1))+rest)
			}
		}
	}
	for i, d := range fraction {
		if d > '0' {
			all = append(all, wholePart(whole)+`\.`+fraction[:i]+fmt.Sprintf("([0-%c][0-9]*)?", d-1))
		}
	}
	if fraction != "" {
		all = append(all, wholePart(whole))
	}
	if len(whole) == 1 && whole != "0" {
		all = append(all, `\.[0-9]+`)
	}
	return all
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("(_?[0-9]){%d}", n)
}

// grouped is digits as they may be written: 25_000.
func grouped(digits string) string {
	var b strings.Builder
	for i, d := range digits {
		if i > 0 {
			b.WriteString("_?")
		}
		b.WriteRune(d)
	}
	if digits != "" {
		b.WriteString("_?")
	}
	return b.String()
}

// wholePart is the part of a decimal before its point. A zero may be left out.
func wholePart(digits string) string {
	if digits == "0" {
		return "0?"
	}
	return strings.TrimSuffix(grouped(digits), "_?")
}

// The patterns are right for decimals around their bounds.
func TestAboveAndBelow(t *testing.T) {
	for _, bound := range []string{"0.001", "0.999", "0.5", "1", "1.05", "4", "5", "10", "99", "100", "1000", "1000000", "2147483647", "0.00001", "9223372036.854775807"} {
		up, down := regexp.MustCompile("^("+strings.Join(above(bound), "|")+")$"), regexp.MustCompile("^("+strings.Join(below(bound), "|")+")$")
		limit, _ := new(big.Rat).SetString(bound)
		step := big.NewRat(1, 1_000_000_000)
		for _, factor := range []string{"0", "0.0001", "0.009", "0.1", "0.5", "0.9", "0.99", "0.9999999", "1", "1.0000001", "1.01", "1.1", "2", "9", "10", "11", "1000", "123456"} {
			for _, plus := range []int64{-1_000_000_000, -1, 0, 1, 1_000_000_000} {
				by, _ := new(big.Rat).SetString(factor)
				x := by.Mul(by, limit)
				x.Add(x, new(big.Rat).Mul(step, new(big.Rat).SetInt64(plus)))
				if x.Sign() < 0 {
					continue
				}
				text := x.FloatString(30)
				short := strings.TrimRight(strings.TrimRight(text, "0"), ".")
				for _, text := range []string{text, short, strings.TrimPrefix(short, "0")} {
					if text == "" {
						continue
					}
					exact, _ := new(big.Rat).SetString(text)
					if got, want := up.MatchString(text), exact.Cmp(limit) > 0; got != want {
						t.Errorf("%s above %s: %t", text, bound, got)
					}
					if got, want := down.MatchString(text), exact.Cmp(limit) < 0; got != want {
						t.Errorf("%s below %s: %t", text, bound, got)
					}
				}
			}
		}
	}
	if !regexp.MustCompile("^(" + strings.Join(above("1000"), "|") + ")$").MatchString("1_000_000") {
		t.Error("1_000_000 is not above 1000")
	}
}
