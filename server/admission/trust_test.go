package admission_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/admission"
)

// Who is not believed is a first attempt whose caller waits for ever. The others are asked for their time, also if
// they are refused.
func TestTrust(t *testing.T) {
	type seen struct {
		class    admission.AttemptKind
		priority admission.Priority
	}
	header := []string{"Lull-Criticality", "sheddable", "Lull-Attempt", "2", "Lull-Timeout", "10"}
	for name, c := range map[string]struct {
		opts   []admission.MiddlewareOption
		status int // the client does not wait for as long as requests take
		want   seen
	}{
		"no option": {nil, 503, seen{admission.Retry, admission.Critical}},
		"nobody":    {[]admission.MiddlewareOption{admission.WithTrust(lullhttp.TrustNobody)}, 200, seen{admission.First, admission.Critical}},
		"everybody": {[]admission.MiddlewareOption{admission.WithTrust(lullhttp.TrustEverybody)}, 503, seen{admission.Retry, admission.Sheddable}},
		"everybody, but the server knows better": {[]admission.MiddlewareOption{admission.WithTrust(lullhttp.TrustEverybody),
			admission.WithPriority(func(*http.Request) admission.Priority { return admission.SheddablePlus })}, 503, seen{admission.Retry, admission.SheddablePlus}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []seen
			a := must.Have(admission.New(admission.Config{}, admission.WithRand(seed.Source(t)), admission.WithObserver(func(e admission.Event) {
				if e.Kind != admission.Departure {
					got = append(got, seen{e.Class, e.Priority})
				}
			})))
			m := must.Have(admission.NewGate(a).Middleware(c.opts...))
			h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(100 * ms) }))
			for range 20 {
				get(h)
			}
			got = nil
			resp := get(h, header...)
			check.Equal(t, resp.Header.Get("Lull") == "1", name != "nobody", "%s: %v", name, resp.Header)
			if resp.StatusCode != c.status || fmt.Sprint(got) != fmt.Sprint([]seen{c.want}) {
				t.Errorf("%s: %d, seen as %v; want %d, %v", name, resp.StatusCode, got, c.status, c.want)
			}
		})
	}
}

// Requests with a client certificate that the server has verified may state their own
// criticality. Others may not.
func ExampleWithTrust() {
	m, err := admission.NewMiddleware(admission.Config{}, admission.WithTrust(lullhttp.TrustMutualTLS))
	if err != nil {
		log.Fatal(err)
	}
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Body)
	// Output: served
}
