package lullhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/outlier"
)

// grpcFails answers as servers of gRPC do that fail, with the status in the header or in the trailer.
func grpcFails(w http.ResponseWriter, inTrailer bool, status string, pushback ...string) {
	w.Header().Set("Content-Type", "application/grpc")
	prefix := ""
	if inTrailer {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		prefix = http.TrailerPrefix
	}
	w.Header().Set(prefix+"Grpc-Status", status)
	for _, p := range pushback {
		w.Header().Set(prefix+"Grpc-Retry-Pushback-Ms", p)
	}
}

func grpcAnswers(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/grpc+proto")
	io.WriteString(w, message)
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
}

// http2Bubble runs f with a client of a server that speaks HTTP/2.
func http2Bubble(t *testing.T, p lull.Policy, h http.HandlerFunc, f func(t *testing.T, c *http.Client, url string), options ...lullhttp.Option) {
	synctest.Test(t, func(t *testing.T) {
		s := memnet.NewUnstartedServer(t, h)
		s.EnableHTTP2 = true
		memnet.StartTLS(s)
		f(t, client(t, p, append(options, lullhttp.WithBase(s.Client().Transport))...), s.URL)
	})
}

func grpcRequest(url string, body io.Reader) *http.Request {
	req, _ := http.NewRequest("POST", url+"/shop.Orders/Get", body)
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	return req
}

// A call of gRPC that fails has the status 200, and its own in the header, or in the trailer of an empty body. It is repeated
// like any POST: if that was declared to be harmless. The answer comes through with its trailer.
func TestGRPCStatus(t *testing.T) {
	idempotent := lullhttp.WithRoute("/shop.Orders/Get", lull.Idempotent())
	for name, c := range map[string]struct {
		options  []lullhttp.Option
		status   string // of the first two attempts
		pushback []string
		attempts int
		reason   engine.Reason
		code     string
		took     time.Duration // at least
	}{
		"unavailable":            {[]lullhttp.Option{idempotent}, "14", nil, 3, engine.Success, "", 0},
		"unavailable, as a POST": {nil, "14", nil, 1, engine.NotIdempotent, "unavailable", 0},
		"exhausted":              {[]lullhttp.Option{idempotent}, "8", nil, 3, engine.Success, "", 0},
		"pushback":               {[]lullhttp.Option{idempotent}, "14", []string{"700"}, 3, engine.Success, "", 1400 * time.Millisecond},
		"do not":                 {[]lullhttp.Option{idempotent}, "14", []string{"-1"}, 1, engine.Overloaded, "unavailable", 0},
		"not found":              {[]lullhttp.Option{idempotent}, "5", nil, 1, engine.Permanent, "not_found", 0},
		"internal":               {[]lullhttp.Option{idempotent}, "13", nil, 1, engine.Permanent, "unclassified", 0},
		"no number":              {[]lullhttp.Option{idempotent}, "x", nil, 1, engine.Permanent, "unclassified", 0},
		"ok":                     {[]lullhttp.Option{idempotent}, "0", nil, 1, engine.Success, "", 0},
	} {
		for _, inTrailer := range []bool{false, true} {
			for _, unknown := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, trailer %v, of unknown length %v", name, inTrailer, unknown), func(t *testing.T) {
					var n atomic.Int64
					http2Bubble(t, eager, func(w http.ResponseWriter, r *http.Request) {
						check.Equal(t, string(must(io.ReadAll(r.Body))), "order 7", "attempt %d", n.Load()+1)
						if n.Add(1) < 3 {
							grpcFails(w, inTrailer, c.status, c.pushback...)
							return
						}
						grpcAnswers(w, "found")
					}, func(t *testing.T, cl *http.Client, url string) {
						req := grpcRequest(url, strings.NewReader("order 7"))
						if unknown {
							req = grpcRequest(url, struct{ io.Reader }{strings.NewReader("order 7")})
						}
						began := time.Now()
						resp, err := cl.Do(req)
						body := read(t, resp, err)
						o := lullhttp.OutcomeOf(resp)
						if o.Attempts != c.attempts || int(n.Load()) != c.attempts || o.Reason != c.reason || o.Verdict.Code != c.code || time.Since(began) < c.took {
							t.Errorf("%+v after %v and %d requests", o, time.Since(began), n.Load())
						}
						got, want := resp.Trailer.Get("Grpc-Status"), "0"
						if c.attempts == 1 {
							if want = c.status; !inTrailer {
								got = resp.Header.Get("Grpc-Status")
							}
						} else {
							check.Equal(t, body, "found", "body")
						}
						check.Equal(t, got, want, "status")
					}, append(c.options, lullhttp.WithReplay(100))...)
				})
			}
		}
	}
}

// A call that ends without a response has an error with the status of gRPC.
func TestGRPCStatusInAnError(t *testing.T) {
	for _, inTrailer := range []bool{false, true} {
		p := eager
		p.Deadline, p.HintLimit = time.Second, time.Minute
		p.AttemptTimeout = p.Deadline
		var heard []string
		o := lullhttp.WithObserver(observe(func(e lull.Event) {
			if e.Err != nil {
				heard = append(heard, e.Err.Error())
			}
		}))
		http2Bubble(t, p, func(w http.ResponseWriter, r *http.Request) { grpcFails(w, inTrailer, "14", "1") }, func(t *testing.T, cl *http.Client, url string) {
			resp, err := cl.Do(grpcRequest(url, nil).WithContext(lullhttp.WithCall(t.Context(), lull.Idempotent())))
			read(t, resp, err)
			if len(heard) < 2 || !strings.Contains(heard[0], "200 OK, grpc-status 14") {
				t.Errorf("%q", heard)
			}
		}, o)
	}
}

// Rule 20: a stream is not held back for its status. If the request is open, the response comes at once. If it has ended,
// a silent response is held for a quarter of a second.
func TestGRPCStreamsAreNotHeld(t *testing.T) {
	for name, c := range map[string]struct {
		open  bool          // the request is
		after time.Duration // the first byte
		took  time.Duration
	}{
		"open, silent":     {true, 30 * time.Second, 0},
		"ended, silent":    {false, 30 * time.Second, 250 * time.Millisecond},
		"ended, with data": {false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			http2Bubble(t, eager, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/grpc")
				w.(http.Flusher).Flush()
				time.Sleep(c.after)
				io.WriteString(w, "first")
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
				io.WriteString(w, "second")
				w.Header().Set(http.TrailerPrefix+"Grpc-Status", "14")
			}, func(t *testing.T, cl *http.Client, url string) {
				var body io.Reader = strings.NewReader("order 7")
				r, w := io.Pipe()
				if c.open {
					body = r
				}
				began := time.Now()
				resp, err := cl.Do(grpcRequest(url, body))
				if err != nil {
					t.Fatal(err)
				}
				check.Equal(t, time.Since(began), c.took, "how long the response was held")
				w.Close()
				check.Equal(t, readBytes(t, resp.Body, 5), "first", "message")
				check.Equal(t, read(t, resp, nil), "second", "message")
				check.Equal(t, resp.Trailer.Get("Grpc-Status"), "14", "status")
				check.Equal(t, lullhttp.OutcomeOf(resp).Reason, engine.Success, "reason")
			})
		})
	}
}

// Only a response of gRPC has its status there.
func TestGRPCStatusOfOthers(t *testing.T) {
	for _, contentType := range []string{"", "application/grpc-web", "application/grpcx", "text/plain"} {
		http2Bubble(t, eager, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Grpc-Status", "14")
		}, func(t *testing.T, cl *http.Client, url string) {
			resp, err := cl.Do(grpcRequest(url, nil))
			read(t, resp, err)
			check.Equal(t, lullhttp.OutcomeOf(resp).Reason, engine.Success, "%q", contentType)
		})
	}
	// What the user says of a response counts for more.
	http2Bubble(t, eager, func(w http.ResponseWriter, r *http.Request) { grpcFails(w, false, "5") }, func(t *testing.T, cl *http.Client, url string) {
		resp, err := cl.Do(grpcRequest(url, nil))
		read(t, resp, err)
		check.Equal(t, lullhttp.OutcomeOf(resp).Reason, engine.Success, "a classifier's")
	}, lullhttp.WithClassifier(func(r *http.Response, err error) lull.Verdict {
		if err == nil && r.Header.Get("Grpc-Status") == "5" {
			return lull.Verdict{Kind: lull.KindSuccess}
		}
		return lull.Verdict{}
	}))
}

// An endpoint whose calls of gRPC are UNAVAILABLE is ejected, as one that answers 503 is.
func TestGRPCEjectsEndpoints(t *testing.T) {
	run(t, "", func(t *testing.T) {
		endpoints := must(lullhttp.NewEndpoints(outlier.Config{}, []string{"a.test", "b.test"}))
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			code := "0"
			if r.URL.Host == "a.test" {
				code = "14"
			}
			return &http.Response{StatusCode: 200, ProtoMajor: 2, Header: http.Header{"Content-Type": {"application/grpc"}, "Grpc-Status": {code}}, Body: http.NoBody}, nil
		})
		cl := client(t, lull.Policy{Attempts: 1}, lullhttp.WithBase(base), lullhttp.WithEndpoints("example.test", endpoints))
		for range 40 {
			resp, err := cl.Do(grpcRequest(host, nil))
			read(t, resp, err)
		}
		for _, e := range endpoints.Status() {
			check.Equal(t, e.Ejected, strings.Contains(fmt.Sprint(e), "a.test"), "%+v", e)
		}
	})
}
