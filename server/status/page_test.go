package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	budgets "github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	throttles "github.com/lullgo/lull/throttle"
)

var errDown = lull.Transient(errors.New("down"))

func fail(context.Context) error { return errDown }

// ask returns the page's answer. header has pairs of a name and a value.
func ask(p http.Handler, method, target, form string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// shown returns what the page has of a dependency, by its JSON.
func shown(t *testing.T, p *Page, name string) (found dependency) {
	t.Helper()
	var s snapshot
	must.Succeed(json.Unmarshal(ask(p, "GET", "/?format=json", "").Body.Bytes(), &s))
	n := 0
	for _, d := range s.Dependencies {
		if d.Name == name {
			n++
			found = d
		}
	}
	check.Equal(t, n, 1, "dependencies with the name %q", name)
	return found
}

func calls(d dependency, why engine.Reason) (n reason) {
	for _, r := range d.LastMinute {
		if r.Reason == why.String() {
			return r
		}
	}
	return n
}

func TestStateOfADependency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Page)
		d := must.Have(lull.NewDependency("d", lull.Policy{
			Attempts: 2, Backoff: backoff.Schedule{Base: time.Second, Jitter: backoff.None, Kind: backoff.Constant},
			Limit: bulkhead.Config{InFlight: 1, MaxWait: time.Minute}, Throttle: throttles.Config{Mode: throttles.Cubic},
		}, lull.WithObserver(p)))
		p.Watch(d, d, nil)
		idle := shown(t, p, "d")
		check.Equal(t, idle.Observed, false, "observed before a call")
		check.Equal(t, idle.Circuit, circuit{State: "closed"}, "the circuit")
		check.Equal(t, *idle.Budget, budget{Tokens: 20, Stock: 20}, "the budget")
		check.Equal(t, *idle.Limit, limit{Most: 1}, "the limit")
		check.Equal(t, *idle.Throttle, throttle{}, "the throttle")

		go lull.Run(t.Context(), d, fail)
		synctest.Wait()
		waits := shown(t, p, "d")
		check.Equal(t, waits.Waiting, 1, "calls that wait for a retry")
		check.Equal(t, waits.Budget.Tokens, 19, "tokens")
		check.Equal(t, waits.Failed, 0, "calls that have ended")
		check.Equal(t, waits.Errors[0].Text, "down", "the error")
		time.Sleep(2 * time.Second)

		hold := make(chan struct{})
		for range 2 {
			go lull.Run(t.Context(), d, func(context.Context) error { <-hold; return nil })
		}
		synctest.Wait()
		check.Equal(t, *shown(t, p, "d").Limit, limit{InFlight: 1, Most: 1, Waiting: 1}, "the limit")
		close(hold)
		synctest.Wait()

		d.Breaker().ForceOpen(d.Now())
		lull.Run(t.Context(), d, fail)
		time.Sleep(3 * time.Second)
		end := shown(t, p, "d")
		check.Equal(t, end.Circuit, circuit{State: "open", Forced: true, OpenFor: 3, Change: "closed to open: forced", ChangeAgo: 3}, "the circuit")
		check.Equal(t, calls(end, engine.AttemptsExhausted), reason{"attempts_exhausted", engine.AttemptsExhausted.Meaning(), 1, 0, 0}, "calls")
		check.Equal(t, calls(end, engine.CircuitOpen), reason{"circuit_open", engine.CircuitOpen.Meaning(), 1, 1, 0}, "calls")
		check.Equal(t, end.Failed, 2, "failed calls")
		check.Equal(t, end.Errors[0].Times, 2, "failed attempts")

		d.Breaker().Auto(d.Now())
		check.Equal(t, shown(t, p, "d").Circuit.State, "half-open", "the circuit")
	})
}

func TestAnOpenCircuitHasItsProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Page)
		d := must.Have(lull.NewDependency("d", lull.Policy{Attempts: 1, Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: 8 * time.Second}},
			lull.WithObserver(p), lull.WithRand(func() uint64 { return 1 << 63 })))
		p.Watch(d)
		lull.Run(t.Context(), d, fail)
		time.Sleep(time.Second)
		c := shown(t, p, "d").Circuit
		now := d.Now()
		check.Equal(t, c.ProbeIn, seconds(d.Breaker().RetryAt(now)-now), "the time to the probe")
		check.Equal(t, c.ProbeIn > 0 && c.OpenFor == 1 && !c.Forced, true, "%+v", c)
	})
}

func TestAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Page)
		failed := func() int64 { return shown(t, p, "d").Failed }
		end := func() { p.Observe(t.Context(), lull.Event{Dependency: "d", Reason: engine.Limited}) }
		end()
		for range 59 {
			time.Sleep(time.Second)
			end()
		}
		check.Equal(t, failed(), 60, "calls of a minute")
		time.Sleep(30 * time.Second)
		if n := failed(); n < 25 || n > 30 {
			t.Errorf("half a minute later %d calls, want those of 25 to 30 s", n)
		}
		time.Sleep(30 * time.Second)
		check.Equal(t, failed(), 0, "calls a minute later")
		p.Observe(t.Context(), lull.Event{Kind: event.HedgeRefused, Dependency: "d", Reason: engine.TooManyHedges})
		d := shown(t, p, "d")
		check.Equal(t, calls(d, engine.TooManyHedges).Hedges, 1, "hedges refused")
		check.Equal(t, d.Failed, 0, "calls, with a refused hedge")
	})
}

// Whatever fails, and with whatever text, there is a bound to what is kept.
func TestMemoryIsBounded(t *testing.T) {
	p := new(Page)
	huge := errors.New(strings.Repeat("\xffé", 1<<10))
	for i := range maxTallies + 100 {
		name := fmt.Sprintf("%06d%s", i, strings.Repeat("n", maxName))
		for code := range maxErrors + 1 {
			p.Observe(t.Context(), lull.Event{
				Dependency: name, Reason: engine.AttemptsExhausted, Operation: name, Attempt: 1, EndedAttempt: 1, Err: huge,
				Verdict: lull.Verdict{Kind: lull.KindTransient, Code: fmt.Sprint(code, name)},
			})
		}
	}
	s := p.read()
	if n := len(s.Dependencies); n > maxTallies || n < maxTallies/2 {
		t.Errorf("%d dependencies are kept, want at most %d", n, maxTallies)
	}
	const ellipsis = 3
	for _, d := range s.Dependencies {
		check.Equal(t, len(d.Errors), maxErrors, "errors kept")
		for _, e := range d.Errors {
			if len(e.Text) > maxText+ellipsis || max(len(e.Code), len(e.Operation), len(d.Name)) > maxName+ellipsis {
				t.Fatalf("text of %d bytes, code of %d, operation of %d, name of %d", len(e.Text), len(e.Code), len(e.Operation), len(d.Name))
			}
		}
	}
	page := ask(p, "GET", "/", "").Body.String()
	check.Equal(t, strings.Count(page, `<section>`), mostShown, "sections")
	check.Equal(t, strings.Contains(page, fmt.Sprint(mostShown, " of ", len(s.Dependencies))), true, "the page reports what it leaves out")
}

// The latest failures stay, each code of an operation once.
func TestTheLatestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Page)
		failed := func(code, text string) {
			p.Observe(t.Context(), lull.Event{Kind: event.AttemptFailed, Dependency: "d", Operation: "get", EndedAttempt: 2, Err: errors.New(text), Verdict: lull.Verdict{Kind: lull.KindTransient, Code: code}})
			time.Sleep(time.Second)
		}
		failed("old", "old")
		for range 3 {
			for i := range maxErrors {
				failed(fmt.Sprint(i), fmt.Sprint("text ", i))
			}
		}
		failed("0", "the latest")
		d := shown(t, p, "d")
		check.Equal(t, d.Errors[0], failure{Code: "0", Kind: "transient", Operation: "get", Attempt: 2, Text: "the latest", Ago: 1, Times: 4}, "the latest")
		for _, e := range d.Errors {
			check.Equal(t, e.Code == "old", false, "the oldest is kept")
		}
		p.Observe(t.Context(), lull.Event{Kind: event.AttemptFailed, Dependency: "d", Operation: "put", EndedAttempt: 1, Verdict: lull.Verdict{Kind: lull.KindTransient, Code: "0"}})
		d = shown(t, p, "d")
		check.Equal(t, d.Errors[0].Operation, "put", "the latest")
		check.Equal(t, d.Errors[1].Operation, "get", "the one before it, with the same code")
		// A success, and a call that its caller ended, are no failures.
		p.Observe(t.Context(), lull.Event{Dependency: "e", Attempt: 2, EndedAttempt: 2, Verdict: lull.Verdict{Kind: lull.KindSuccess}})
		p.Observe(t.Context(), lull.Event{Dependency: "e", Reason: engine.Canceled, Attempt: 1, EndedAttempt: 1, Verdict: lull.Verdict{Kind: lull.KindTransient}})
		check.Equal(t, len(shown(t, p, "e").Errors), 0, "errors")
	})
}

type panics struct{}

func (panics) Error() string { panic("in Error") }

// Nobody else's code runs under a lock of the page.
func TestAPanicInErrorLocksNothing(t *testing.T) {
	p := new(Page)
	func() {
		defer func() { check.Equal[any](t, recover(), "in Error", "the panic") }()
		p.Observe(t.Context(), lull.Event{Dependency: "d", Reason: engine.Permanent, EndedAttempt: 1, Err: panics{}})
	}()
	check.Equal(t, shown(t, p, "d").Failed, 1, "calls")
}

var hostile = `</small><script>alert(1)</script>"'&<img src=x onerror=alert(1)>` + "\x00\x1b\xff"

func TestThePageEscapesAll(t *testing.T) {
	p := &Page{ForceCircuits: true}
	d := must.Have(lull.NewDependency(hostile, lull.Policy{Attempts: 1}, lull.WithObserver(p),
		lull.WithClassifier(func(error) lull.Verdict { return lull.Verdict{Kind: lull.KindTransient, Code: hostile} })))
	p.Watch(d)
	lull.Run(t.Context(), d, func(context.Context) error { return errors.New(hostile) }, lull.Operation(hostile))
	page := ask(p, "GET", "/?refresh="+url.QueryEscape(hostile), "").Body.String()
	for _, not := range []string{"<script", "<img", `http-equiv="refresh"`} {
		check.Equal(t, strings.Contains(page, not), false, "the page has %s:\n%s", not, page)
	}
	check.Equal(t, strings.Count(page, "&lt;img"), 8, "places where it is shown")
}

// Whatever text comes from outside is text in every place of the page, also between two quotes: a browser reads it there, and no
// element begins or ends with it.
func FuzzTextStaysText(f *testing.F) {
	page := func(text string) string {
		v := view{Refresh: 5, Force: true, All: 1, snapshot: snapshot{Dependencies: []dependency{{
			Name: text, Circuit: circuit{State: text, Forced: true, Change: text},
			LastMinute: []reason{{Reason: text, Meaning: text}}, Errors: []failure{{Code: text, Kind: text, Operation: text, Text: text}},
		}}}}
		return string(v.html())
	}
	const word = "WORD"
	plain := page(word)
	for _, text := range []string{hostile, "%s%!d(string=", "&lt;b&gt;", "&am", "`${7*7}`", "{{.}}", "--></style></title>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			t.Skip("what is empty is left out in some places")
		}
		is := page(text)
		if read, want := html.UnescapeString(is), strings.ReplaceAll(plain, word, strings.ReplaceAll(text, "\x00", "\uFFFD")); read != want {
			t.Errorf("%q: a browser reads\n%s\nwant\n%s", text, read, want)
		}
		for _, special := range []string{"<", ">", `"`, "'", "\x00"} {
			check.Equal(t, strings.Count(is, special), strings.Count(plain, special), "%q: places with %s", text, special)
		}
	})
}

// The page needs no script, no other file, and its tables can be read aloud.
func TestThePage(t *testing.T) {
	p := &Page{ForceCircuits: true}
	d := must.Have(lull.NewDependency("d", lull.Policy{Attempts: 1}, lull.WithObserver(p)))
	p.Watch(d)
	lull.Run(t.Context(), d, fail)
	w := ask(p, "GET", "/?refresh=7", "")
	page := w.Body.String()
	check.Equal(t, w.Header().Get("Content-Type"), "text/html; charset=utf-8", "the type")
	check.Equal(t, w.Header().Get("Cache-Control"), "no-store", "what caches keep")
	check.Equal(t, strings.Contains(page, `<meta http-equiv="refresh" content="7">`), true, "it is loaded again")
	count := func(pattern string) int { return len(regexp.MustCompile(pattern).FindAllString(page, -1)) }
	check.Equal(t, count(`<table>\s*<caption>[^<]+</caption>`), count(`<table`), "tables with a caption")
	check.Equal(t, count(`<table`), 3, "tables")
	check.Equal(t, count(`<th scope="(row|col)">`), count(`<th\b`), "headers with a scope")
	check.Equal(t, count(`<script|<link|<img|<iframe|url\(|@import|\bsrc=|\bon\w+=`), 0, "scripts and files")
	check.Equal(t, count(`(href|action)="\?[^"]*"`), count(`href=|action=`), "links to the page itself")
	check.Equal(t, count(`<html lang="en">`), 1, "the language")
	for _, refresh := range []string{"0", "-1", "3601", "x", ""} {
		check.Equal(t, strings.Contains(ask(p, "GET", "/?refresh="+refresh, "").Body.String(), "http-equiv"), false, "refresh=%s", refresh)
	}
	if empty := ask(new(Page), "GET", "/", "").Body.String(); !strings.Contains(empty, "none") {
		t.Error(empty)
	}
}

func TestPageOrJSON(t *testing.T) {
	for _, c := range []struct {
		query, accept string
		json          bool
	}{
		{"", "", false},
		{"", "*/*", false},
		{"", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
		{"", "text/html, application/json", false},
		{"", "application/json", true},
		{"", "application/json-seq", false},
		{"", "x/application/json", false},
		{"", "text/html-not, application/json;charset=utf-8", true},
		{"", "Application/JSON; q=0.9, text/plain", true},
		{"?format=json", "text/html", true},
		{"?format=html", "application/json", false},
		{"?format=xml", "application/json", false},
	} {
		w := ask(new(Page), "GET", "/"+c.query, "", "Accept", c.accept)
		check.Equal(t, w.Header().Get("Content-Type") == "application/json", c.json, "%+v", c)
		check.Equal(t, json.Valid(w.Body.Bytes()), c.json, "%+v", c)
		check.Equal(t, w.Header().Get("Vary"), "Accept", "%+v", c)
	}
}

// Two names are two rows, however long they are, and whatever bytes they have.
func TestEveryNameHasARow(t *testing.T) {
	long := strings.Repeat("x", 2*maxName)
	p := &Page{ForceCircuits: true}
	for _, name := range []string{long + "a", long + "b", "c\xff"} {
		d := must.Have(lull.NewDependency(name, lull.Policy{}, lull.WithObserver(p)))
		p.Watch(d)
		lull.Run(t.Context(), d, func(context.Context) error { return lull.Permanent(errDown) })
	}
	var s snapshot
	must.Succeed(json.Unmarshal(ask(p, "GET", "/?format=json", "").Body.Bytes(), &s))
	check.Equal(t, len(s.Dependencies), 3, "rows")
	for _, d := range s.Dependencies {
		check.Equal(t, d.Failed, 1, "failed calls of %s", d.Name)
		check.Equal(t, ask(p, "POST", "/", "circuit=open&dependency="+url.QueryEscape(d.Name)).Code, http.StatusSeeOther, "forcing %s", d.Name)
		forced := 0
		p.dependencies(func(d *lull.Dependency) {
			if d.Breaker().Forced() {
				forced++
				d.Breaker().Auto(d.Now())
			}
		})
		check.Equal(t, forced, 1, "circuits forced with %s", d.Name)
	}
}

// Names that do well take no place of those that have failed.
func TestSuccessesDisplaceNoFailure(t *testing.T) {
	p := new(Page)
	p.Observe(t.Context(), lull.Event{Dependency: "d", Reason: engine.Permanent, EndedAttempt: 1, Attempt: 1, Err: errDown})
	for i := range 3 * maxTallies {
		p.Observe(t.Context(), lull.Event{Dependency: fmt.Sprint(i), Attempt: 1, EndedAttempt: 1, Verdict: lull.Verdict{Kind: lull.KindSuccess}})
	}
	check.Equal(t, shown(t, p, "d").Failed, 1, "failed calls")
}

// odd is a budget of the program's own, with that balance.
type odd struct {
	budgets.Budget
	balance float64
}

func (b odd) Balance(time.Duration) float64 { return b.balance }

// JSON is whole whatever is watched: lists are lists, and numbers are numbers.
func TestTheJSONIsWhole(t *testing.T) {
	p := new(Page)
	p.WatchAll(nil)
	p.Watch(nil, must.Have(lull.NewDependency("quiet", lull.Policy{})))
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		d := must.Have(lull.NewDependency(fmt.Sprint(x), lull.Policy{}, lull.WithBudget(func() budgets.Budget { return odd{must.Have(budgets.New(budgets.Config{})), x} })))
		p.Watch(d)
	}
	body := ask(p, "GET", "/?format=json", "").Body.String()
	check.Equal(t, json.Valid([]byte(body)), true, "valid: %s", body)
	check.Equal(t, strings.Contains(body, "null"), false, "a null: %s", body)
}

// The comment of the package has each field of the JSON, and no other.
func TestTheFieldsOfTheJSON(t *testing.T) {
	_, list, _ := strings.Cut(string(must.Have(os.ReadFile("doc.go"))), "is absent:\n//\n")
	list, _, _ = strings.Cut(list, "\n//\n")
	fields := map[string]bool{}
	for _, f := range strings.FieldsFunc(list, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) }) {
		fields[f] = true
	}
	have := map[string]bool{}
	for _, part := range []any{snapshot{}, dependency{}, circuit{}, budget{}, limit{}, throttle{}, reason{}, failure{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(part)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() {
				have[name] = true
			}
		}
	}
	check.Equal(t, fmt.Sprint(slices.Sorted(maps.Keys(fields))), fmt.Sprint(slices.Sorted(maps.Keys(have))), "fields")
}

// Circuits are forced by a POST alone, from the page's own site, and only if the program allows it.
func TestForcing(t *testing.T) {
	const open = "dependency=d&circuit=open"
	p := &Page{ForceCircuits: true}
	d := must.Have(lull.NewDependency("d", lull.Policy{}, lull.WithObserver(p)))
	p.Watch(d, must.Have(lull.NewDependency("none", lull.Policy{Breaker: breaker.Config{Off: true}})))
	closed := new(Page)
	closed.Watch(d)
	for _, c := range []struct {
		of                   *Page
		method, target, form string
		header               []string
		status               int
		state                string
	}{
		{closed, "POST", "/", open, nil, http.StatusMethodNotAllowed, "closed"},
		{p, "PUT", "/", open, nil, http.StatusMethodNotAllowed, "closed"},
		{p, "DELETE", "/?" + open, "", nil, http.StatusMethodNotAllowed, "closed"},
		{p, "GET", "/?" + open, "", nil, http.StatusOK, "closed"},
		{p, "HEAD", "/?" + open, "", nil, http.StatusOK, "closed"},
		{p, "POST", "/?" + open, "", nil, http.StatusBadRequest, "closed"}, // only the body counts
		{p, "POST", "/", open, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden, "closed"},
		{p, "POST", "/", open, []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden, "closed"},
		{p, "POST", "/", open, []string{"Origin", "https://evil.example"}, http.StatusForbidden, "closed"},
		{p, "POST", "/", open, []string{"Origin", "null"}, http.StatusForbidden, "closed"},
		{p, "POST", "/", "dependency=d&circuit=ajar", nil, http.StatusBadRequest, "closed"},
		{p, "POST", "/", "dependency=x&circuit=open", nil, http.StatusNotFound, "closed"},
		{p, "POST", "/", "dependency=none&circuit=open", nil, http.StatusNotFound, "closed"},
		{p, "POST", "/", open + "&more=" + strings.Repeat("x", maxForm), nil, http.StatusBadRequest, "closed"},
		{p, "POST", "/", open, []string{"Sec-Fetch-Site", "same-origin"}, http.StatusSeeOther, "open"},
		{p, "POST", "/", "dependency=d&circuit=auto", []string{"Origin", "http://example.com"}, http.StatusSeeOther, "half-open"},
		{p, "POST", "/?refresh=5", "dependency=d&circuit=closed", nil, http.StatusSeeOther, "closed"},
	} {
		w := ask(c.of, c.method, c.target, c.form, c.header...)
		check.Equal(t, w.Code, c.status, "%s %s %s %v: the status", c.method, c.target, c.form[:min(len(c.form), 40)], c.header)
		check.Equal(t, d.Breaker().State(d.Now()).String(), c.state, "%s %s %s %v: the circuit", c.method, c.target, c.form[:min(len(c.form), 40)], c.header)
		if c.status == http.StatusMethodNotAllowed {
			check.Equal(t, strings.Contains(w.Header().Get("Allow"), "POST"), c.of == p, "%s: Allow has POST", c.method)
		}
		if c.status == http.StatusSeeOther {
			check.Equal(t, strings.HasPrefix(w.Header().Get("Location"), "?"), true, "the way back: %s", w.Header().Get("Location"))
		}
	}
	check.Equal(t, shown(t, p, "d").Circuit.Forced, true, "forced")
	check.Equal(t, strings.Contains(ask(closed, "GET", "/", "").Body.String(), "<form"), false, "forms where nothing may be forced")
	check.Equal(t, strings.Count(ask(p, "GET", "/", "").Body.String(), "<form"), 1, "forms")
}

// The page shows the hosts of a lullhttp.Transport, and what has no Watch.
func TestHostsOfATransport(t *testing.T) {
	p := new(Page)
	down := memnet.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	calls := must.Have(lullhttp.New(lull.Policy{}, lullhttp.WithBase(memnet.Transport(t)), lullhttp.WithObserver(p)))
	resp := must.Have((&http.Client{Transport: calls}).Get(down.URL))
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	host := strings.TrimPrefix(down.URL, "http://")
	check.Equal(t, shown(t, p, host).Watched, false, "watched")
	p.WatchAll(calls.Registry().All)
	d := shown(t, p, host)
	check.Equal(t, d.Watched && d.Observed, true, "watched, and observed")
	check.Equal(t, d.Errors[0].Code, "404", "the code")
}

func TestConcurrentUse(t *testing.T) {
	p := &Page{ForceCircuits: true}
	d := must.Have(lull.NewDependency("d", lull.Policy{Attempts: 1}, lull.WithObserver(p)))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 200 {
				switch (i + n) % 4 {
				case 0:
					lull.Run(t.Context(), d, fail)
				case 1:
					ask(p, "GET", []string{"/", "/?format=json"}[n%2], "")
				case 2:
					p.Watch(d)
				default:
					ask(p, "POST", "/", "dependency=d&circuit="+[]string{"open", "closed", "auto"}[n%3])
				}
			}
		})
	}
	all.Wait()
	check.Equal(t, shown(t, p, "d").Observed, true, "observed")
}

func TestCost(t *testing.T) {
	p := new(Page)
	d := must.Have(lull.NewDependency("d", lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout}, lull.WithObserver(p)))
	ctx := context.Background()
	check.Equal(t, testing.AllocsPerRun(100, func() { lull.Run(ctx, d, func(context.Context) error { return nil }) }), 0, "allocations of a success")
	e := lull.Event{Dependency: "d", Reason: engine.Permanent, EndedAttempt: 1, Verdict: lull.Verdict{Kind: lull.KindPermanent, Code: "404"}, Err: errDown}
	p.Observe(ctx, e)
	if n := testing.AllocsPerRun(100, func() { p.Observe(ctx, e) }); n > 0 {
		t.Errorf("%v allocations of a failure", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, e := range map[string]lull.Event{
		"success": {Dependency: "d", Attempt: 1, EndedAttempt: 1, Verdict: lull.Verdict{Kind: lull.KindSuccess}},
		"refused": {Dependency: "d", Reason: engine.CircuitOpen},
		"failure": {Dependency: "d", Reason: engine.Permanent, EndedAttempt: 1, Verdict: lull.Verdict{Kind: lull.KindPermanent, Code: "404"}, Err: errDown},
	} {
		b.Run(name, func(b *testing.B) {
			p := new(Page)
			for b.Loop() {
				p.Observe(context.Background(), e)
			}
		})
	}
}
