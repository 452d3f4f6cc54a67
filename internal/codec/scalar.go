package codec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/pretty"
)

const (
	allowedDuration = "a duration such as 250ms, 1.5s or 2m"
	allowedInteger  = "a whole number such as 500, 25k or 2M"
	allowedNumber   = "a number such as 0.5, 800 or 25k"
	allowedShare    = "a share such as 0.1 or 10%, and with the % above 1"
)

// Scalar sets v to the value that text has. If text has none, allowed is what would be right, and
// suggestion what was probably meant.
func Scalar(text string, v reflect.Value, f Form) (allowed, suggestion string) {
	if v.Kind() == reflect.String {
		v.SetString(text)
		return "", ""
	}
	if bare := strings.TrimSpace(text); bare != text {
		v = reflect.New(v.Type()).Elem()
		if allowed, suggestion = Scalar(bare, v, f); allowed == "" {
			allowed, _ = Scalar("?", v, f)
			suggestion = bare
		}
		return allowed, suggestion
	}
	switch t := v.Type(); {
	case t == durationType:
		d, ok := duration(text, f)
		if ok {
			v.SetInt(int64(d))
			return "", ""
		}
		allowed = allowedDuration
		if w, ok := words[f]; ok {
			allowed += `, or "` + w.text + `"`
		}
		return allowed, nearestDuration(text, f)
	case t.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return "true or false", nearestBool(text)
		}
		v.SetBool(text == "true")
		return "", ""
	case len(customs[t].Words) > 0:
		words := customs[t].Words
		i := slices.Index(words, text)
		if i < 0 {
			return words[1] + " or " + words[0], nearestBool(text)
		}
		v.SetUint(uint64(1 + i))
		return "", ""
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		n, ok := integer(text)
		if !ok || v.OverflowInt(n) {
			return allowedInteger, nearestNumber(text, func(s string) bool { _, ok := integer(s); return ok })
		}
		v.SetInt(n)
		return "", ""
	case t.Kind() == reflect.Float64:
		n, ok := number(text, f)
		if ok {
			v.SetFloat(n)
			return "", ""
		}
		if f == Share {
			return allowedShare, nearestShare(text)
		}
		return allowedNumber, nearestNumber(text, func(s string) bool { _, ok := number(s, f); return ok })
	case t.Kind() == reflect.Uint8:
		names := EnumNames(t)
		for i, name := range names {
			// Of equal length: folding takes some letters that are not ASCII for ones that are.
			if len(name) == len(text) && strings.EqualFold(name, text) {
				v.SetUint(uint64(i))
				return "", ""
			}
		}
		return choice.List(names), choice.Nearest(text, names)
	default:
		panic(fmt.Sprintf("codec: a field of type %v", t)) // TestEveryFieldCanBeRead keeps it from happening
	}
}

// duration reads what time.ParseDuration does, and the word of the form. A duration that would be
// rounded to zero is refused, since zero stands for the default.
func duration(text string, f Form) (time.Duration, bool) {
	if w, ok := words[f]; ok && text == w.text {
		return w.value, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && (d != 0 || !strings.ContainsAny(text, "123456789"))
}

// Units are the suffixes of numbers, as powers of ten.
var Units = map[byte]int{'k': 3, 'M': 6, 'G': 9}

// decimal splits "-12_000.5k" into its digits without the point, "-120005", and the power of ten to
// multiply them by, 2. A text without digits is no number.
func decimal(text string) (digits string, power int, ok bool) {
	if n := len(text); n > 0 {
		if p, ok := Units[text[n-1]]; ok {
			power, text = p, strings.TrimRight(text[:n-1], " ")
		}
	}
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	whole, fraction, point := strings.Cut(text, ".")
	whole, ok = ungroup(whole)
	if !ok || point && fraction == "" || whole+fraction == "" || strings.Trim(fraction, "0123456789") != "" {
		return "", 0, false
	}
	return sign + whole + fraction, power - len(fraction), true
}

// ungroup drops the underscores from "25_000_000".
func ungroup(digits string) (string, bool) {
	if strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") {
		return "", false
	}
	digits = strings.ReplaceAll(digits, "_", "")
	// A leading zero would be octal in one version of YAML and decimal in the next.
	if len(digits) > 1 && digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	return digits, true
}

func integer(text string) (int64, bool) {
	digits, power, ok := decimal(text)
	if !ok {
		return 0, false
	}
	for ; power < 0; power++ {
		if !strings.HasSuffix(digits, "0") {
			return 0, false // not whole
		}
		digits = digits[:len(digits)-1]
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", power), 10, 64)
	return n, err == nil
}

// maxBare: a share above 1 and up to maxBare needs a %, because some would read 10 as ten per cent
// and others as ten times. A larger one is too much either way.
const maxBare = 100

// number reads a number as a decimal, so that 10% is exactly the same as 0.1.
func number(text string, f Form) (float64, bool) {
	percent := false
	if f == Share {
		text, percent = strings.CutSuffix(text, "%")
		text = strings.TrimRight(text, " ")
	}
	mantissa, exponent, ok := strings.Cut(strings.ReplaceAll(text, "E", "e"), "e")
	power := 0
	if ok {
		p, err := strconv.Atoi(exponent)
		if err != nil || percent || p < -400 || p > 400 {
			return 0, false
		}
		power = p
	}
	digits, p, isDecimal := decimal(mantissa)
	if !isDecimal || (ok || f == Share) && mantissa[len(mantissa)-1] > '9' { // 10k is no share
		return 0, false
	}
	power += p
	if percent {
		power -= 2
	}
	n, err := strconv.ParseFloat(digits+"e"+strconv.Itoa(power), 64)
	if err != nil {
		return 0, false // too large
	}
	if n == 0 {
		// Zero stands for the default, so nothing else may become zero by rounding. -0
		// becomes 0, because reflection does not take it for zero.
		return 0, strings.Trim(digits, "-0") == ""
	}
	return n, f != Share || percent || n <= 1 || n > maxBare
}

// EnumNames are the names of the values of t, which count from zero. The list ends with the first
// value whose String is not a name.
func EnumNames(t reflect.Type) []string {
	var names []string
	for i := range 256 {
		v := reflect.New(t).Elem()
		v.SetUint(uint64(i))
		s, ok := v.Interface().(fmt.Stringer)
		if !ok {
			break
		}
		name := s.String()
		if strings.HasPrefix(name, "unknown") || strings.Contains(name, "(") {
			break
		}
		names = append(names, name)
	}
	return names
}

var unitWords = map[string]string{
	"ns": "ns", "us": "us", "µs": "µs",
	"ms": "ms", "msec": "ms", "msecs": "ms", "millis": "ms", "milliseconds": "ms",
	"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
}

var endless = []string{"off", "no", "never", "false", "disabled", "unlimited", "infinite", "infinity", "inf", "forever"}

// nearestDuration is the duration that was probably meant by text, which is no duration of form f.
func nearestDuration(text string, f Form) string {
	lower := strings.ToLower(text)
	if w, ok := words[f]; ok {
		if near := choice.Nearest(text, []string{w.text}); near != "" || f == Timeout && slices.Contains(endless, lower) {
			return w.text
		}
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return "" // it could have any unit
	}
	if d, ok := duration(strings.ReplaceAll(lower, " ", ""), Plain); ok {
		return pretty.Duration(d)
	}
	unit := strings.TrimLeft(lower, "0123456789. ")
	amount := strings.TrimSpace(strings.TrimSuffix(lower, unit))
	if days, err := strconv.Atoi(amount); err == nil && days <= 10_000 && (unit == "d" || unit == "day" || unit == "days") {
		return strconv.Itoa(24*days) + "h"
	}
	if unit, ok := unitWords[unit]; ok {
		if d, ok := duration(amount+unit, Plain); ok {
			return pretty.Duration(d)
		}
	}
	return ""
}

// nearestNumber is text with the unit in the right case and without separators, if that is a number.
func nearestNumber(text string, isNumber func(string) bool) string {
	text = strings.NewReplacer(" ", "", ",", "", "'", "", "+", "", "K", "k", "m", "M", "g", "G", "B", "G").Replace(text)
	if text != "" && isNumber(text) {
		return text
	}
	if n, ok := number(text, Plain); ok && n == math.Trunc(n) && math.Abs(n) < 1e15 { // as 1e6
		if text = prettyInteger(int64(n)); isNumber(text) {
			return text
		}
	}
	return ""
}

// nearestShare is the percentage that was probably meant by a number above 1; otherwise the nearest number.
func nearestShare(text string) string {
	if n, ok := number(text, Plain); ok && n > 1 && n <= maxBare {
		return prettyNumber(n, Plain) + "%"
	}
	return nearestNumber(text, func(s string) bool { _, ok := number(s, Share); return ok })
}

// inBraces is the mapping that was probably meant by text, for a struct of type t: {off: true} for
// off, or the text as its first field, such as {mode: cubic}.
func inBraces(t reflect.Type, text string) string {
	for i, m := range Members(t) {
		v := reflect.New(t).Elem().FieldByIndex(m.Index)
		switch kind := v.Kind(); {
		case kind == reflect.Bool && m.Key == text:
			return "{" + m.Key + ": true}"
		case i > 0 || kind == reflect.Bool || kind == reflect.String || kind == reflect.Slice || kind == reflect.Struct:
		default:
			if allowed, _ := Scalar(text, v, m.Form); allowed == "" {
				return "{" + m.Key + ": " + text + "}"
			}
		}
	}
	return ""
}

func nearestBool(text string) string {
	switch strings.ToLower(text) {
	case "yes", "y", "on", "1", "true":
		return "true"
	case "no", "n", "off", "0", "false":
		return "false"
	}
	return ""
}

func leaves(v reflect.Value, path string) []string {
	switch {
	case customs[v.Type()].Whole:
		return []string{path}
	case v.Kind() == reflect.Struct:
		var all []string
		for _, m := range Members(v.Type()) {
			all = append(all, leaves(v.FieldByIndex(m.Index), Field(path, m.Key))...)
		}
		return all
	case v.Kind() == reflect.Slice:
		var all []string
		for i := range v.Len() {
			all = append(all, leaves(v.Index(i), Field(path, strconv.Itoa(i)))...)
		}
		return all
	}
	return []string{path}
}
