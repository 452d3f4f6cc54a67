package lullhttp

import (
	"strings"
	"time"

	"github.com/lullgo/lull/internal/choice"
)

// parseRateLimit reads the RateLimit field of draft-ietf-httpapi-ratelimit-headers-10, a List of
// Strings with parameters (RFC 9651):
//
//	RateLimit: "burst";r=0;t=30, "daily";r=812
//
// r is what remains of the quota that the String names. t is the number of seconds until more of it
// comes. The wait is the longest t of the quotas with r=0. It returns false if there is none.
//
// A malformed member spoils the whole field, as the draft demands. The forms of older drafts
// ("limit=100, remaining=50, reset=30") are malformed.
func parseRateLimit(lines []string) (wait time.Duration, ok bool) {
	for _, line := range lines {
		rest := strings.Trim(line, " \t")
		for more := rest != ""; more; {
			var member string
			member, rest, more = cutUnquoted(rest, ',')
			exhausted, reset, valid := parseQuota(strings.Trim(member, " \t"))
			if !valid {
				return 0, false
			}
			if exhausted {
				wait, ok = max(wait, reset), true
			}
		}
	}
	return wait, ok
}

// parseQuota reads one member of the field. exhausted: it has r=0, and a t.
func parseQuota(member string) (exhausted bool, reset time.Duration, valid bool) {
	name, rest, more := cutUnquoted(member, ';')
	if !strings.HasPrefix(name, `"`) || !isBareItem(name) {
		return false, 0, false
	}
	r, t, pk := "", "", ":" // a parameter that is repeated counts as its last
	for more {
		var parameter string
		parameter, rest, more = cutUnquoted(rest, ';')
		key, value, hasValue := strings.Cut(strings.TrimLeft(parameter, " "), "=")
		isKey := key != "" && consists(key[:1], lowerCase+"*") && consists(key, lowerCase+digits+"_-.*")
		if !isKey || hasValue && !isBareItem(value) {
			return false, 0, false
		}
		switch key {
		case "r":
			r = value
		case "t":
			t = choice.Either(!hasValue, "?1", value)
		case "pk":
			pk = value
		}
	}
	remaining, valid := parseDigits(r, time.Second)
	if t != "" && valid {
		reset, valid = parseDigits(t, time.Second)
	}
	if !valid || !strings.HasPrefix(pk, ":") {
		return false, 0, false
	}
	return remaining == 0 && t != "", reset, true
}

// cutUnquoted is strings.Cut at a separator that does not stand in quotes.
func cutUnquoted(s string, separator byte) (before, after string, found bool) {
	quoted, escapes := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
			escapes = quoted && (i == 0 || s[i-1] != '%') // a Display String has no backslash escapes
		case c == '\\' && escapes:
			i++
		case c == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	letters   = lowerCase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits    = "0123456789"
)

// consists reports whether s has only bytes of the set.
func consists(s, set string) bool {
	for i := range len(s) {
		if strings.IndexByte(set, s[i]) < 0 {
			return false
		}
	}
	return true
}

// isBareItem reports whether s is a bare item of RFC 9651.
func isBareItem(s string) bool {
	if s == "" {
		return false
	}
	switch rest := s[1:]; s[0] {
	case '"':
		return isQuoted(s, '\\')
	case '%': // that a Display String is UTF-8 is not checked
		return isQuoted(rest, '%')
	case '?':
		return rest == "0" || rest == "1"
	case '@':
		return isInteger(rest)
	case ':': // RFC 9651 lets a parser take one without padding
		body := strings.TrimRight(rest, ":=")
		padding := strings.TrimPrefix(rest, body)
		return consists(body, letters+digits+"+/") &&
			(padding == ":" && len(body)%4 != 1 || padding == "=:" && len(body)%4 == 3 || padding == "==:" && len(body)%4 == 2)
	}
	if consists(s[:1], letters+"*") {
		return consists(s, letters+digits+"!#$%&'*+-.^_`|~:/")
	}
	whole, fraction, decimal := strings.Cut(s, ".")
	if !decimal {
		return isInteger(s)
	}
	return isInteger(whole) && len(strings.TrimPrefix(whole, "-")) <= 12 && fraction != "" && len(fraction) <= 3 && consists(fraction, digits)
}

func isInteger(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && len(s) <= 15 && consists(s, digits)
}

// isQuoted reports whether s is printable ASCII in quotes, with valid escapes.
func isQuoted(s string, escape byte) bool {
	s, ok := strings.CutPrefix(s, `"`)
	for i := 0; ok && i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i == len(s)-1
		case c < ' ' || c > '~':
			return false
		case c == escape && c == '%':
			i += 2
			ok = i < len(s) && consists(s[i-1:i+1], digits+"abcdef")
		case c == escape:
			i++
			ok = i < len(s) && (s[i] == '"' || s[i] == escape)
		}
	}
	return false
}
