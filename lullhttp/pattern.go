package lullhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A table holds a value for each pattern. Patterns are those of [http.ServeMux],
// "[METHOD ][HOST]/[PATH]", with two differences: the host may have a port, and a
// pattern without a slash is a host, and matches every path. Of several patterns that
// match the most specific one counts. It is built first, and then only read.
type table[T any] struct {
	rows []row[T]       // the more specific ones first
	mux  *http.ServeMux // judges patterns
}

type row[T any] struct {
	pattern string
	method  string // empty: any
	host    string // canonical; empty: any
	path    []string
	literal int  // how many segments of path are literals
	rest    bool // whatever follows path matches, too
	value   T
}

// wild is a segment of a pattern that matches any other. A literal has no slash.
const wild = "/"

// add takes in a pattern. It reports one that is malformed, is there already, or
// overlaps another so that neither is the more specific.
func (t *table[T]) add(pattern string, value T) error {
	method, target := "", pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, target = pattern[:i], strings.TrimLeft(pattern[i:], " \t")
	}
	host, path, slash := strings.Cut(target, "/")
	if !slash && host == "" || strings.ContainsAny(host, " \t") {
		return errors.New("want a pattern such as api.example.com or POST api.example.com/search/{index}")
	}
	r := row[T]{pattern: pattern, method: method, host: canonicalHost("", host), value: value}
	// A colon would not be part of a ServeMux's host.
	if err := t.try(strings.TrimLeft(method+" "+strings.ReplaceAll(r.host, ":", "!")+"/"+path, " ")); err != nil {
		return err
	}
	for i := 0; path != "" || i == 0; i++ {
		var segment string
		segment, path, slash = strings.Cut(path, "/")
		switch {
		case segment == "" && !slash: // the pattern ends with a slash
			r.rest = true
		case segment == "{$}":
			r.path = append(r.path, "")
			r.literal++
		case strings.HasSuffix(segment, "...}"):
			r.rest = true
		case strings.HasPrefix(segment, "{"):
			r.path = append(r.path, wild)
		default:
			r.path = append(r.path, unescape(segment))
			r.literal++
		}
		if slash && path == "" {
			r.rest = true
		}
	}
	t.rows = append(t.rows, r)
	// ServeMux takes only patterns of which any two that match one request can be
	// compared, so that this order puts the more specific one first.
	slices.SortStableFunc(t.rows, func(a, b row[T]) int {
		return cmp.Or(
			cmp.Compare(min(len(b.host), 1), min(len(a.host), 1)),
			cmp.Compare(len(b.path), len(a.path)),
			cmp.Compare(b.literal, a.literal),
			cmp.Compare(one(a.rest), one(b.rest)),
			cmp.Compare(breadth(a.method), breadth(b.method)),
		)
	})
	return nil
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// breadth is how many methods a pattern's method matches, as an order.
func breadth(method string) int {
	switch method {
	case "":
		return 2
	case http.MethodGet: // and HEAD
		return 1
	}
	return 0
}

// try has ServeMux judge a pattern, which panics at one that it does not take.
func (t *table[T]) try(pattern string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	if t.mux == nil {
		t.mux = http.NewServeMux()
	}
	t.mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

// find is the value of the most specific pattern that matches a request to the
// canonical host. It takes no lock and allocates nothing, unless the path has
// characters to escape.
func (t *table[T]) find(req *http.Request, host string) (value T, ok bool) {
	var path string
	for i := range t.rows {
		r := &t.rows[i]
		if r.host != "" && r.host != host || !r.takes(req.Method) {
			continue
		}
		if path == "" {
			path = req.URL.EscapedPath()
			if path == "" {
				path = "/"
			}
		}
		if r.matches(path) {
			return r.value, true
		}
	}
	return value, false
}

func (r *row[T]) takes(method string) bool {
	if method == "" {
		method = http.MethodGet
	}
	return r.method == "" || r.method == method || r.method == http.MethodGet && method == http.MethodHead
}

// matches compares a path, which begins with a slash, segment by segment.
func (r *row[T]) matches(path string) bool {
	for _, want := range r.path {
		if path == "" || path[0] != '/' {
			return false
		}
		path = path[1:]
		end := strings.IndexByte(path, '/')
		if end < 0 {
			end = len(path)
		}
		have := path[:end]
		if want == wild && have == "" || want != wild && want != have && want != unescape(have) {
			return false
		}
		path = path[end:]
	}
	if r.rest {
		return path != ""
	}
	return path == ""
}

func unescape(segment string) string {
	if u, err := url.PathUnescape(segment); err == nil {
		return u
	}
	return segment
}
