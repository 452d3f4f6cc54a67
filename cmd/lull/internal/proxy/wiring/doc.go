// Package wiring is what "lull proxy" takes from larger modules: metrics for Prometheus, traces over OTLP, the budget of a
// fleet, and stores for Idempotency-Keys.
package wiring

import (
	"errors"
	"net/url"
	"strings"
)

// shown returns address without what may be secret: user, password and the query. Errors print it.
func shown(address string) string {
	u, err := parse(address)
	if err != nil {
		scheme, _, _ := strings.Cut(address, "://")
		if scheme == address {
			return "(not shown)"
		}
		return scheme + "://..."
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

var errNoURL = errors.New("not a URL: characters of a password other than letters and digits are written as %XX")

// parse is url.Parse. It refuses what may be a password in the wrong place, and its error has no part of the address.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.User == nil && strings.Contains(address, "@") || u.Fragment != "" || strings.ContainsAny(u.Host+u.Path+u.Opaque, "= ") {
		return nil, errNoURL
	}
	return u, nil
}
