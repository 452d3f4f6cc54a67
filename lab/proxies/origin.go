package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// An origin is a server behind proxies. It knows which requests have come.
type origin struct {
	url    string
	server *http.Server

	mu     sync.Mutex
	quiet  bool                 // it does not record
	seen   map[string][]arrival // by the call
	answer answer
}

// An arrival is a request of a call.
type arrival struct {
	method string
	at     time.Duration // since the origin was opened
}

// An answer answers the request with that number of a call; 1 is the first one.
type answer func(w http.ResponseWriter, r *http.Request, number int)

func good(w http.ResponseWriter, _ *http.Request, _ int) { io.WriteString(w, "{}\n") }

func unavailable(w http.ResponseWriter, _ *http.Request, _ int) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

// cut ends the connection of a request that has been read and carried out.
func cut(w http.ResponseWriter, _ *http.Request, _ int) { panic(http.ErrAbortHandler) }

func openOrigin() *origin { return openOriginAt("127.0.0.1:0") }

func openOriginAt(address string) *origin {
	l := must.Have(net.Listen("tcp", address))
	o := &origin{url: "http://" + l.Addr().String(), seen: map[string][]arrival{}, answer: good}
	began := time.Now()
	o.server = &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		o.mu.Lock()
		if o.quiet {
			o.mu.Unlock()
			good(w, r, 1)
			return
		}
		o.seen[r.URL.Path] = append(o.seen[r.URL.Path], arrival{r.Method, time.Since(began)})
		number, answer := len(o.seen[r.URL.Path]), o.answer
		o.mu.Unlock()
		answer(w, r, number)
	})}
	go o.server.Serve(l)
	return o
}

// next forgets what has come, and answers what comes now.
func (o *origin) next(a answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen, o.answer = map[string][]arrival{}, a
}

// count returns how many requests of that method have come, and how many of its calls had several. Empty means all methods.
func (o *origin) count(method string) (requests, repeated int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, all := range o.seen {
		if method == "" || all[0].method == method {
			requests += len(all)
			if len(all) > 1 {
				repeated++
			}
		}
	}
	return requests, repeated
}

// caller makes calls without retries, as a program beside a proxy does.
func caller() *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
}

// call makes one call, and returns the status; 0 if there was no whole answer.
func call(c *http.Client, method, url string) int {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(`{"amount": 100}`)
	}
	resp, err := c.Do(must.Have(http.NewRequest(method, url, body)))
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// every calls one for each number, so many a second, and waits for all.
func every(n int, rate float64, one func(i int)) {
	began := time.Now()
	var group sync.WaitGroup
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
		group.Go(func() { one(i) })
	}
	group.Wait()
}
