package codec

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/pretty"
)

var unitWords = map[string]string{
	"ns": "ns", "us": "us", "µs": "µs",
	"ms": "ms", "msec": "ms", "msecs": "ms", "millis": "ms", "milliseconds": "ms",
	"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
}

var endless = []string{"off", "no", "never", "false", "disabled", "unlimited", "infinite", "infinity", "inf", "forever"}

var amount = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,9})?)\s*(\pL+)$`)

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
	parts := amount.FindStringSubmatch(lower)
	if parts == nil {
		return ""
	}
	if days, err := strconv.Atoi(parts[1]); err == nil && days <= 10_000 && (parts[2] == "d" || parts[2] == "day" || parts[2] == "days") {
		return strconv.Itoa(24*days) + "h"
	}
	if unit, ok := unitWords[parts[2]]; ok {
		if d, ok := duration(parts[1]+unit, Plain); ok {
			return pretty.Duration(d)
		}
	}
	return ""
}

// nearestNumber is text with the unit in the right case and without separators, if that is a
// number.
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

// nearestShare is the percentage that was probably meant by a number above 1; otherwise the nearest
// number.
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
