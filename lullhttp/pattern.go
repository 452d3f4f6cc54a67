package lullhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// A patternTable holds a value for each pattern. Patterns are those of [http.ServeMux], "[METHOD
// ][HOST]/[PATH]", with two differences: the host may have a port, and a pattern without a slash is
// a host and matches every path. Once built, it is only read.
type patternTable[T any] struct {
	mux    *http.ServeMux // nil: no pattern
	values map[string]T   // by the mux's pattern
}

// add adds a pattern. It fails for one that is malformed, known, or in conflict with another.
func (t *patternTable[T]) add(pattern string, value T) (err error) {
	method, target := "", pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, target = pattern[:i]+" ", strings.TrimLeft(pattern[i:], " \t")
	}
	host, path, slash := strings.Cut(target, "/")
	if !slash && host == "" || strings.ContainsAny(host, " \t") {
		return errors.New("want a pattern such as api.example.com or POST api.example.com/search/{index}")
	}
	if t.mux == nil {
		t.mux, t.values = http.NewServeMux(), make(map[string]T)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	known := method + muxHost(canonicalHost("", host)) + "/" + path
	t.mux.Handle(known, http.NotFoundHandler()) // panics at a pattern that it does not take
	t.values[known] = value
	return nil
}

// find returns the value of the most specific pattern that matches a request to the canonical host.
func (t *patternTable[T]) find(req *http.Request, host string) (value T, ok bool) {
	if t.mux == nil {
		return value, false
	}
	u := req.URL
	if u.Path == "" {
		u = &url.URL{Path: "/"}
	}
	_, pattern := t.mux.Handler(&http.Request{Method: cmp.Or(req.Method, http.MethodGet), URL: u, Host: muxHost(host)})
	value, ok = t.values[pattern]
	return value, ok
}

// muxHost returns a canonical host for the mux, which takes no port.
func muxHost(host string) string { return strings.ReplaceAll(host, ":", "!") }
