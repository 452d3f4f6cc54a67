package probe

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/lab/torture"
)

// A Target is a server, and what you know about it. Only URL is required.
type Target struct {
	// URL is the address of the GETs. No request goes to another scheme, host or port.
	URL string
	// Post is the path of the POSTs, and may have a query. Empty means that of URL.
	Post string
	// NoPost means that no POSTs are sent. Then idempotency keys are not graded.
	NoPost bool
	// Body is the body of the POSTs. Other is a second one that the server accepts, too. Nil
	// means {"lull":"probe"} and {"lull":"probe again"}. If only Body is set, there is no second one.
	Body, Other []byte
	// Type is the Content-Type of both. Empty means application/json.
	Type string
	// Busy is a path that refuses GETs, always or if many come at once. Empty means that of URL.
	Busy string
	// Slow is a path where a GET takes a second or longer. Empty means that there is none.
	Slow string
	// Fail is a path where a POST is answered with 500 or above. Empty means that there is none.
	Fail string
	// Header is sent with every request, such as Authorization. Cards do not show it.
	Header http.Header
}

// Options are how a server is graded. The zero Options are the recommended ones.
type Options struct {
	Cases    []Case                                   // nil means all
	Requests int                                      // the most in all; zero means DefaultRequests
	Rate     float64                                  // the most in a second, after Together at once; zero means DefaultRate
	Together int                                      // the most at once; zero means DefaultTogether
	Progress func(done, all int, last torture.Result) // called when a case is over, one call at a time
}

// The defaults of the zero Options.
const (
	DefaultRequests = 600
	DefaultRate     = 100
	DefaultTogether = 32
)

// The bounds of Options.
const (
	MostRequests = 100_000
	MostRate     = 10_000
	MostTogether = 1000
)

const (
	defaultBody  = `{"lull":"probe"}`
	defaultOther = `{"lull":"probe again"}`
)

// Check returns an error if a target or options are wrong. It sends nothing. Run checks the same.
func Check(t Target, o Options) error {
	_, _, _, err := check(t, o)
	return err
}

// check returns the target with its defaults, its URL, the options with theirs, and what is wrong.
func check(t Target, o Options) (Target, *url.URL, Options, error) {
	var l problem.List
	u, err := url.Parse(t.URL)
	ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
	l.Check(ok, "URL", strconv.Quote(t.URL), "http://HOST/PATH or https://HOST/PATH")
	for _, p := range []struct {
		name string
		path *string
	}{{"Post", &t.Post}, {"Busy", &t.Busy}, {"Slow", &t.Slow}, {"Fail", &t.Fail}} {
		if *p.path == "" {
			continue
		}
		parsed, err := url.ParseRequestURI(*p.path)
		if ok := err == nil && strings.HasPrefix(*p.path, "/") && !strings.HasPrefix(*p.path, "//"); ok {
			*p.path = parsed.RequestURI()
		} else {
			l.Add(p.name, strconv.Quote(*p.path), "a path that begins with one /, of the same host")
		}
	}
	for name, values := range t.Header {
		for _, v := range values {
			l.Check(name != "" && !strings.ContainsAny(name, " :\t\r\n") && !strings.ContainsAny(v, "\r\n\x00"), "Header", strconv.Quote(name), "the name of a header, and values of one line each")
		}
	}
	o.Requests, o.Rate, o.Together = cmp.Or(o.Requests, DefaultRequests), cmp.Or(o.Rate, DefaultRate), cmp.Or(o.Together, DefaultTogether)
	l.Check(o.Requests >= 1 && o.Requests <= MostRequests, "Requests", o.Requests, "1 to 100000")
	l.Check(o.Rate > 0 && o.Rate <= MostRate, "Rate", o.Rate, "more than 0, at most 10000 a second")
	l.Check(o.Together >= 2 && o.Together <= MostTogether, "Together", o.Together, "2 to 1000")
	if err := l.Err(); err != nil {
		return t, nil, o, err
	}
	if t.Body == nil {
		t.Body = []byte(defaultBody)
		if t.Other == nil {
			t.Other = []byte(defaultOther)
		}
	}
	t.Type, t.Post, t.Busy = cmp.Or(t.Type, "application/json"), cmp.Or(t.Post, u.RequestURI()), cmp.Or(t.Busy, u.RequestURI())
	if o.Cases == nil {
		o.Cases = Cases()
	}
	return t, u, o, nil
}
