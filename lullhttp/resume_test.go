package lullhttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/lullhttp"
)

// content is what is downloaded. No two places of it look alike.
var content = func() []byte {
	b := make([]byte, 100_000)
	for i := range len(b) / 4 {
		copy(b[4*i:], strconv.Itoa(1000 + i%9000)[:4])
	}
	return b
}()

const contentTag = `"v1"`

// cutOff writes a part of an answer, and breaks the connection off.
func cutOff(w http.ResponseWriter, part []byte) {
	w.Write(part)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// sendCut sends the content, or what of it a request asks for, and breaks off after so many bytes.
// A negative number is all.
func sendCut(w http.ResponseWriter, r *http.Request, bytes int) {
	from := 0
	w.Header().Set("Etag", contentTag)
	if v := r.Header.Get("Range"); v != "" {
		fmt.Sscanf(v, "bytes=%d-", &from)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
	}
	rest := content[from:]
	w.Header().Set("Content-Length", strconv.Itoa(len(rest)))
	if r.Header.Get("Range") != "" {
		w.WriteHeader(http.StatusPartialContent)
	}
	if bytes >= 0 && bytes < len(rest) {
		cutOff(w, rest[:bytes])
	}
	w.Write(rest)
}

// A download that breaks off is continued where it did, and its reader gets each byte once.
func TestADownloadIsResumed(t *testing.T) {
	for name, first := range map[string]http.HandlerFunc{
		"length known":         func(w http.ResponseWriter, r *http.Request) { sendCut(w, r, 40_000) },
		"before its beginning": func(w http.ResponseWriter, r *http.Request) { sendCut(w, r, 0) },
		"length unknown": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", contentTag)
			cutOff(w, content[:40_000])
		},
		"all but its end": func(w http.ResponseWriter, r *http.Request) { sendCut(w, r, len(content)-1) },
	} {
		t.Run(name, func(t *testing.T) {
			var ranges []string
			handler := func(w http.ResponseWriter, r *http.Request) {
				ranges = append(ranges, r.Header.Get("Range"))
				switch len(ranges) {
				case 1:
					first(w, r)
				case 2:
					check.Equal(t, r.Header.Get("If-Range"), contentTag, "If-Range")
					check.Equal(t, lullhttp.ParseAttempt(r.Header), 2, "the number of the attempt")
					check.Equal(t, r.Header.Get("Accept-Encoding"), "", "Accept-Encoding")
					http.Error(w, "", http.StatusServiceUnavailable)
				default:
					sendCut(w, r, -1)
				}
			}
			inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
				resp := must(c.Get(host))
				body, err := io.ReadAll(resp.Body)
				if err != nil || !bytes.Equal(body, content) {
					t.Errorf("%d bytes, %v", len(body), err)
				}
				check.Equal(t, resp.Body.Close(), nil, "Close")
				check.Equal(t, len(ranges), 3, "attempts")
				check.Equal(t, ranges[1], ranges[2], "Range of the second and third attempt")
			}, lullhttp.WithResume())
		})
	}
}

// What is not the rest of the same body by its header is not read.
func TestARestThatMayBeAnotherIsRefused(t *testing.T) {
	const cut = 40_000
	rest := content[cut:]
	full := fmt.Sprintf("bytes %d-%d/%d", cut, len(content)-1, len(content))
	answer := func(status int, body []byte, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Add(header[i], header[i+1])
			}
			w.WriteHeader(status)
			w.Write(body)
		}
	}
	for name, second := range map[string]http.HandlerFunc{
		"a later range":            answer(206, rest[1:], "Etag", contentTag, "Content-Range", fmt.Sprintf("bytes %d-%d/%d", cut+1, len(content)-1, len(content))),
		"an earlier range":         answer(206, content[cut-1:], "Etag", contentTag, "Content-Range", fmt.Sprintf("bytes %d-%d/%d", cut-1, len(content)-1, len(content))),
		"a shorter range":          answer(206, rest[:10], "Etag", contentTag, "Content-Range", fmt.Sprintf("bytes %d-%d/%d", cut, cut+9, len(content))),
		"another length":           answer(206, rest, "Etag", contentTag, "Content-Range", fmt.Sprintf("bytes %d-%d/%d", cut, len(content), len(content)+1)),
		"a length left open":       answer(206, rest, "Etag", contentTag, "Content-Range", fmt.Sprintf("bytes %d-%d/*", cut, len(content)-1)),
		"another unit":             answer(206, rest, "Etag", contentTag, "Content-Range", "lines 40000-99999/100000"),
		"two ranges":               answer(206, rest, "Etag", contentTag, "Content-Range", full, "Content-Range", full),
		"no range":                 answer(206, rest, "Etag", contentTag),
		"multipart/byteranges":     answer(206, []byte("--x\r\n"), "Etag", contentTag, "Content-Type", "multipart/byteranges; boundary=x"),
		"parts beside a range":     answer(206, rest, "Etag", contentTag, "Content-Range", full, "Content-Type", "Multipart/Byteranges; boundary=x"),
		"a changed ETag":           answer(206, rest, "Etag", `"v2"`, "Content-Range", full),
		"a weak ETag":              answer(206, rest, "Etag", `W/"v1"`, "Content-Range", full),
		"no ETag":                  answer(206, rest, "Content-Range", full),
		"another coding":           answer(206, rest, "Etag", contentTag, "Content-Range", full, "Content-Encoding", "br"),
		"the whole, changed":       answer(200, content, "Etag", `"v2"`),
		"the whole":                answer(200, content, "Etag", contentTag), // If-Range or Range was ignored
		"not satisfiable":          answer(416, nil, "Content-Range", fmt.Sprintf("bytes */%d", len(content))),
		"gone":                     answer(404, nil),
		"fewer bytes than a range": answer(206, rest[:10], "Etag", contentTag, "Content-Range", full),
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			handler := func(w http.ResponseWriter, r *http.Request) {
				if n := sent.Add(1); n == 1 {
					sendCut(w, r, cut)
				}
				second(w, r)
			}
			inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
				resp := must(c.Get(host))
				body, err := io.ReadAll(resp.Body)
				if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.Equal(body, content[:cut]) {
					t.Errorf("%d bytes, %v", len(body), err)
				}
				if _, again := resp.Body.Read(make([]byte, 1)); again != err {
					t.Errorf("the next Read returns %v", again)
				}
				resp.Body.Close()
				check.Equal(t, int(sent.Load()), 2, "attempts")
			}, lullhttp.WithResume())
		})
	}
}

// A rest without a length of its own may be longer than its Content-Range, or shorter.
func TestARestHasTheLengthOfItsRange(t *testing.T) {
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		if n := sent.Add(1); n == 1 {
			sendCut(w, r, 40_000)
		}
		w.Header().Set("Etag", contentTag)
		w.Header().Set("Content-Range", r.Header.Get("Range")[:5]+" "+r.Header.Get("Range")[6:]+fmt.Sprintf("%d/%d", len(content)-1, len(content)))
		w.WriteHeader(206)
		var from int
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		if sent.Load() == 2 {
			w.Write(content[from : from+10]) // and a regular end
			w.(http.Flusher).Flush()
			return
		}
		w.Write(content[from:])
		w.(http.Flusher).Flush()
		io.WriteString(w, "more")
	}
	inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		resp := must(c.Get(host))
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) && err != nil || !bytes.Equal(body, content) {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		check.Equal(t, int(sent.Load()), 3, "attempts")
	}, lullhttp.WithResume())
}

// What cannot be continued byte by byte is not: one request, and the error of the body as it is.
func TestWhatIsNotResumed(t *testing.T) {
	for name, c := range map[string]struct {
		method, key, value string
		handler            http.HandlerFunc
		resume             bool
	}{
		"the option is off": {handler: func(w http.ResponseWriter, r *http.Request) { sendCut(w, r, 10) }},
		"no ETag": {resume: true, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			cutOff(w, content[:10])
		}},
		"a weak ETag": {resume: true, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", `W/"v1"`)
			cutOff(w, content[:10])
		}},
		"ranges are refused": {resume: true, handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Accept-Ranges", "none")
			sendCut(w, r, 10)
		}},
		"a Range of the caller's": {resume: true, key: "Range", value: "bytes=5-", handler: func(w http.ResponseWriter, r *http.Request) { sendCut(w, r, 10) }},
		"a POST":                  {resume: true, method: "POST", key: "Idempotency-Key", value: "1", handler: func(w http.ResponseWriter, r *http.Request) { sendCut(w, r, 10) }},
		"another status": {resume: true, handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", contentTag)
			w.WriteHeader(http.StatusNonAuthoritativeInfo)
			cutOff(w, content[:10])
		}},
		"a body that was decompressed": {resume: true, handler: func(w http.ResponseWriter, _ *http.Request) {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			z.Write(content)
			z.Close()
			w.Header().Set("Etag", contentTag)
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", strconv.Itoa(packed.Len()))
			cutOff(w, packed.Bytes()[:packed.Len()/2])
		}},
		"trailers": {resume: true, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", contentTag)
			w.Header().Set("Trailer", "Sum")
			cutOff(w, content[:10])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			var opts []lullhttp.Option
			if c.resume {
				opts = append(opts, lullhttp.WithResume())
			}
			handler := func(w http.ResponseWriter, r *http.Request) { n++; c.handler(w, r) }
			inBubble(t, eager, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
				req := must(http.NewRequest(c.method, host, nil))
				if c.key != "" {
					req.Header.Set(c.key, c.value)
				}
				resp := must(client.Do(req))
				_, err := io.ReadAll(resp.Body)
				check.Equal(t, err, io.ErrUnexpectedEOF, "the body's error")
				resp.Body.Close()
				check.Equal(t, n, 1, "requests")
			}, opts...)
		})
	}
}

// A HEAD has no body to break off, and its header stays as it is.
func TestAHeadIsNotResumed(t *testing.T) {
	inBubble(t, eager, func(w http.ResponseWriter, r *http.Request) { sendCut(w, r, -1) }, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		resp := must(c.Head(host))
		check.Equal(t, resp.ContentLength, int64(len(content)), "Content-Length")
		body, err := io.ReadAll(resp.Body)
		check.Equal(t, fmt.Sprint(len(body), err), "0 <nil>", "the body")
	}, lullhttp.WithResume())
}

// A body that the caller has asked for compressed, and decompresses itself, has an ETag of its own.
func TestACompressedBodyIsResumedAsItIs(t *testing.T) {
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		n := sent.Add(1)
		check.Equal(t, r.Header.Get("Accept-Encoding"), "gzip", "Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		sendCut(w, r, 100_000-70_000*int(n))
	}
	inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		req := must(http.NewRequest("GET", host, nil))
		req.Header.Set("Accept-Encoding", "gzip")
		resp := must(c.Do(req))
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(body, content) || sent.Load() != 2 {
			t.Errorf("%d bytes in %d attempts, %v", len(body), sent.Load(), err)
		}
	}, lullhttp.WithResume())
}

// Whatever is cut, wherever, the reader gets the content or a beginning of it with an error, and the
// call makes no more attempts than the policy allows.
func TestNoByteTwiceOrMissing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	p := eager
	p.Attempts = 6
	for range 200 {
		var sent atomic.Int64
		handler := func(w http.ResponseWriter, r *http.Request) {
			sent.Add(1)
			switch rnd.IntN(8) {
			case 0:
				http.Error(w, "", http.StatusServiceUnavailable)
			case 1:
				sendCut(w, r, -1)
			default:
				sendCut(w, r, rnd.IntN(60_000))
			}
		}
		inBubble(t, p, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
			resp := must(c.Get(host))
			if resp.StatusCode != 200 {
				return
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if !bytes.HasPrefix(content, body) || (err == nil) != (len(body) == len(content)) {
				t.Errorf("%d bytes, %v", len(body), err)
			}
			if err != nil {
				check.Equal(t, int(sent.Load()), p.Attempts, "attempts of a call that failed")
			}
			if int(sent.Load()) > p.Attempts {
				t.Errorf("%d attempts", sent.Load())
			}
		}, lullhttp.WithResume())
	}
}

// Rule 1: a server that cuts each body is asked for no more than the budget pays. A rest that begins
// well puts nothing back.
func TestRule01EveryBodyIsCut(t *testing.T) {
	const calls = 500
	n := 0
	p := eager
	p.Budget = budget.Config{Stock: 20, Ratio: 0.1}
	p.Deadline = lull.NoTimeout
	handler := func(w http.ResponseWriter, r *http.Request) { n++; sendCut(w, r, 1) }
	inBubble(t, p, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		refused := 0
		for range calls {
			resp := must(c.Get(host))
			_, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if errors.Is(err, lull.ErrBudgetExhausted) {
				refused++
			}
		}
		if most := calls + calls/10 + 20 + 1; n > most || refused == 0 {
			t.Errorf("%d attempts for %d calls, want at most %d; %d were refused", n, calls, most, refused)
		}
	}, lullhttp.WithResume())
}

// The deadlines of the call and of the caller count from the beginning of the call.
func TestNoRestAfterTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		policy, caller, pause time.Duration
		attempts              int
	}{
		"in time":                {time.Minute, 0, 59 * time.Second, 2},
		"after the policy's":     {time.Minute, 0, 61 * time.Second, 1},
		"without the policy's":   {lull.NoTimeout, 0, time.Hour, 2},
		"after the caller's":     {lull.NoTimeout, time.Minute, 61 * time.Second, 1},
		"the caller's, in time":  {lull.NoTimeout, time.Minute, 59 * time.Second, 2},
		"the policy's is nearer": {time.Minute, time.Hour, 61 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			p := eager
			p.Deadline = c.policy
			handler := func(w http.ResponseWriter, r *http.Request) {
				if n := sent.Add(1); n == 1 {
					w.Header().Set("Etag", contentTag)
					w.Write(content[:10])
					w.(http.Flusher).Flush()
					time.Sleep(c.pause)
					panic(http.ErrAbortHandler)
				}
				sendCut(w, r, -1)
			}
			inBubble(t, p, handler, func(t *testing.T, client *http.Client, _ *atomic.Int64) {
				ctx := t.Context()
				if c.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.caller)
					defer cancel()
				}
				resp := must(client.Do(must(http.NewRequestWithContext(ctx, "GET", host, nil))))
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				check.Equal(t, int(sent.Load()), c.attempts, "attempts")
				if (err == nil) != (sent.Load() == 2) || sent.Load() == 2 && !bytes.Equal(body, content) {
					t.Errorf("%d bytes, %v", len(body), err)
				}
			}, lullhttp.WithResume(), lullhttp.WithBodyIdleTimeout(0))
		})
	}
}

// The body of an answer that is not the rest is not drained beyond the deadline (rule 17), and an error
// that the classifier takes for an answer is none.
func TestTheEndOfACallThatIsNotResumed(t *testing.T) {
	p := eager
	p.Attempts, p.Deadline = 2, 2*time.Second
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		if n := sent.Add(1); n == 1 {
			sendCut(w, r, 10)
		}
		time.Sleep(1900 * time.Millisecond)
		w.WriteHeader(503)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	read := func(t *testing.T, c *http.Client) error {
		resp := must(c.Get(host))
		defer resp.Body.Close()
		_, err := io.ReadAll(resp.Body)
		return err
	}
	inBubble(t, p, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		began := time.Now()
		if err := read(t, c); !errors.Is(err, lull.ErrAttemptsExhausted) {
			t.Error(err)
		}
		check.Equal(t, time.Since(began), p.Deadline, "the time of the call")
	}, lullhttp.WithResume())

	sent.Store(0)
	own := errors.New("own")
	base := roundTrip(func(*http.Request) (*http.Response, error) {
		if n := sent.Add(1); n == 1 {
			return &http.Response{StatusCode: 200, ContentLength: 9, Header: http.Header{"Etag": {contentTag}}, Body: io.NopCloser(strings.NewReader("part"))}, nil
		}
		return nil, own
	})
	err := read(t, client(t, p, lullhttp.WithBase(base), lullhttp.WithResume(), lullhttp.WithClassifier(func(_ *http.Response, err error) lull.Verdict {
		switch err {
		case nil, own:
			return lull.Verdict{Kind: lull.KindSuccess}
		}
		return lull.Verdict{Kind: lull.KindTransient}
	})))
	if e, is := errors.AsType[*lull.Error](err); is || !errors.Is(err, own) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err, e)
	}
}

// A body that falls silent is continued, too, by the rule for timeouts.
func TestASilentBodyIsResumed(t *testing.T) {
	var sent atomic.Int64
	handler := func(w http.ResponseWriter, r *http.Request) {
		if n := sent.Add(1); n == 1 {
			w.Header().Set("Etag", contentTag)
			w.Write(content[:10])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		sendCut(w, r, -1)
	}
	inBubble(t, eager, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
		resp := must(c.Get(host))
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(body, content) {
			t.Errorf("%d bytes, %v", len(body), err)
		}
	}, lullhttp.WithResume(), lullhttp.WithBodyIdleTimeout(time.Second))
}

// Close ends the wait for the rest, and the caller's own end begins none.
func TestCloseEndsTheWaitForTheRest(t *testing.T) {
	for _, how := range []string{"Close", "cancel"} {
		var sent atomic.Int64
		handler := func(w http.ResponseWriter, r *http.Request) {
			if n := sent.Add(1); n == 1 {
				sendCut(w, r, 10)
			}
			<-r.Context().Done()
		}
		p := eager
		p.AttemptTimeout, p.Deadline = lull.NoTimeout, lull.NoTimeout
		inBubble(t, p, handler, func(t *testing.T, c *http.Client, _ *atomic.Int64) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp := must(c.Do(must(http.NewRequestWithContext(ctx, "GET", host, nil))))
			read := make(chan error)
			go func() {
				_, err := io.ReadAll(resp.Body)
				read <- err
			}()
			synctest.Wait()
			check.Equal(t, sent.Load(), 2, "attempts")
			if how == "Close" {
				resp.Body.Close()
			} else {
				cancel()
			}
			if err := <-read; err == nil {
				t.Errorf("%s: the Read succeeds", how)
			}
			resp.Body.Close()
			check.Equal(t, sent.Load(), 2, "attempts after %s", how)
		}, lullhttp.WithResume())
	}
}

// The rest of an answer counts as a success for the breaker, and earns nothing.
func TestContinueNeitherEarnsNorPutsBack(t *testing.T) {
	p := eager
	p.Budget = budget.Config{Stock: 20, Ratio: 0.5}
	d := must(lull.NewDependency("files", p, lull.WithRand(seed.Source(t))))
	for range 4 {
		d.Budget().Withdraw(d.Now(), budget.Transient, nil)
	}
	before := d.Budget().Balance(d.Now())
	cut := lull.Verdict{Kind: lull.KindTransient, Code: "unexpected_eof"}
	r := d.Continue(t.Context(), engine.Spec{}, 1, cut, func(context.Context) lull.Verdict { return lull.Verdict{Kind: lull.KindSuccess} }, nil, nil)
	check.Equal(t, r.Reason, engine.Success, "reason")
	check.Equal(t, r.Attempts, 2, "attempts, with the one before")
	check.Equal(t, before-d.Budget().Balance(d.Now()), 1, "tokens")
	r = d.Continue(t.Context(), engine.Spec{}, p.Attempts, cut, nil, nil, nil)
	check.Equal(t, r.Reason, engine.AttemptsExhausted, "reason after the last attempt")
	r = d.Continue(t.Context(), engine.Spec{Deadline: 1}, 1, cut, nil, nil, nil)
	check.Equal(t, r.Reason, engine.Deadline, "reason after the deadline")
}

func ExampleWithResume() {
	const text = "a long text"
	first := true
	server := newServer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if first {
			first = false
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			io.WriteString(w, text[:6])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler) // the connection breaks
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	})
	defer server.Close()
	client, err := lullhttp.NewClient(quick, lullhttp.WithResume())
	if err != nil {
		panic(err)
	}
	resp, err := client.Get(server.URL)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	// Output: a long text <nil>
}
