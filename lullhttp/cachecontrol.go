package lullhttp

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// cacheControl is what the Cache-Control fields of a request or a response have in them (RFC 9111,
// 5.2; RFC 5861). A time is absent if it is negative. A directive that lists fields counts as the one
// without a list, which is stricter.
type cacheControl struct {
	noStore, noCache, private, public, mustRevalidate, proxyRevalidate bool
	maxAge, sharedMaxAge, staleIfError, maxStale, minFresh             time.Duration
}

const absent time.Duration = -1

// parseCacheControl reads the fields of h. Of a time that is given twice the shorter one counts, and
// one that cannot be read is zero; of min-fresh the longer one counts.
func parseCacheControl(h http.Header) cacheControl {
	c := cacheControl{maxAge: absent, sharedMaxAge: absent, staleIfError: absent, maxStale: absent, minFresh: absent}
	for _, line := range h["Cache-Control"] {
		for line != "" {
			var name, value string
			name, value, line = cutDirective(line)
			c.add(strings.ToLower(name), value)
		}
	}
	if len(h["Cache-Control"]) == 0 && strings.EqualFold(h.Get("Pragma"), "no-cache") {
		c.noCache = true // RFC 9111, 5.4
	}
	return c
}

func (c *cacheControl) add(name, value string) {
	switch name {
	case "no-store":
		c.noStore = true
	case "no-cache":
		c.noCache = true
	case "private":
		c.private = true
	case "public":
		c.public = true
	case "must-revalidate":
		c.mustRevalidate = true
	case "proxy-revalidate":
		c.proxyRevalidate = true
	case "max-age":
		shorten(&c.maxAge, value)
	case "s-maxage":
		shorten(&c.sharedMaxAge, value)
	case "stale-if-error":
		shorten(&c.staleIfError, value)
	case "max-stale":
		shorten(&c.maxStale, cmp.Or(value, "99999999999")) // without a value: any
	case "min-fresh":
		d, _ := parseDigits(value, time.Second)
		c.minFresh = max(c.minFresh, d)
	}
}

func shorten(d *time.Duration, value string) {
	if v, _ := parseDigits(value, time.Second); *d == absent || v < *d {
		*d = v
	}
}

// cutDirective returns the first directive of a list, with its value unquoted, and what follows its
// comma. A quoted value may have commas in it. A quote that does not end may hide any directive, so it
// is a no-store.
func cutDirective(line string) (name, value, rest string) {
	end, quoted := len(line), false
	for i := 0; i < end; i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			end = i
		}
	}
	if quoted {
		return "no-store", "", ""
	}
	if end < len(line) {
		rest = line[end+1:]
	}
	name, value, _ = strings.Cut(line[:end], "=")
	value = strings.Trim(value, " \t")
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
	}
	return strings.Trim(name, " \t"), value, rest
}
