package probe

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/lullgo/lull/internal/problem"
	"github.com/lullgo/lull/torture"
)

// A Target is a server, and what is known of it. Only URL is needed.
type Target struct {
	// URL is asked by GET. No other scheme, host or port is ever asked for anything.
	URL string
	// Post is the path that POSTs go to, with a query if need be. Empty: that of URL.
	Post string
	// NoPost sends no POSTs. Then nothing is seen of idempotency keys.
	NoPost bool
	// Body is that of the POSTs, and Other is another one that the server takes as well. Nil
	// means {"lull":"probe"} and {"lull":"probe again"}. With a Body alone there is no other.
	Body, Other []byte
	// Type is the Content-Type of both. Empty: application/json.
	Type string
	// Busy is a path that refuses requests by GET, if many come at once or always. Empty: that of URL.
	Busy string
	// Slow is a path whose GET takes a second or longer. Empty: there is none.
	Slow string
	// Fail is a path whose POST is answered with 500 or above. Empty: there is none.
	Fail string
	// Header is sent with every request, such as Authorization. It does not show in cards.
	Header http.Header
}

// Options are how a server is graded. The zero Options are the recommended ones.
type Options struct {
	Cases    []Case  // nil means all
	Requests int     // the most that are made; zero: DefaultRequests
	Rate     float64 // the most a second, beyond Together at once; zero: DefaultRate
	Together int     // at once; zero: DefaultTogether
	// Progress is called when a case is over, one call at a time.
	Progress func(done, all int, last torture.Result)
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

// Check returns what is wrong with a target and options, as Run does before it sends anything.
func Check(t Target, o Options) error {
	_, _, _, err := check(t, o)
	return err
}

// check returns the target with its defaults, its URL, and what is wrong with both.
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
	if o.Requests == 0 {
		o.Requests = DefaultRequests
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Together == 0 {
		o.Together = DefaultTogether
	}
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
	if t.Type == "" {
		t.Type = "application/json"
	}
	own := u.RequestURI()
	for _, path := range []*string{&t.Post, &t.Busy} {
		if *path == "" {
			*path = own
		}
	}
	if o.Cases == nil {
		o.Cases = Cases()
	}
	return t, u, o, nil
}
