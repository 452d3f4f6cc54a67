package main

import (
	"errors"
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
	url     string
	address string
	server  *http.Server
	began   time.Time

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

func openOrigin() *origin {
	o := &origin{address: "127.0.0.1:0", began: time.Now(), seen: map[string][]arrival{}, answer: good}
	must.Succeed(o.listen())
	o.url = "http://" + o.address
	return o
}

// listen takes requests at the address, again if the server was closed.
func (o *origin) listen() error {
	l, err := net.Listen("tcp", o.address)
	if err != nil {
		return err
	}
	o.address = l.Addr().String()
	o.server = &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: o}
	go o.server.Serve(l)
	return nil
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	o.mu.Lock()
	number, answer := 1, o.answer
	if !o.quiet {
		o.seen[r.URL.Path] = append(o.seen[r.URL.Path], arrival{r.Method, time.Since(o.began)})
		number = len(o.seen[r.URL.Path])
	}
	o.mu.Unlock()
	answer(w, r, number)
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

const refused = -1

// caller makes calls without retries, as a program beside a proxy does.
func caller() *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
}

// call makes one call, with names and values of headers. It returns the status; 0 if there was no whole answer, and refused if nobody
// listened.
func call(c *http.Client, method, url string, headers ...string) int {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(`{"amount": 100}`)
	}
	r := must.Have(http.NewRequest(method, url, body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(r)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return refused
	}
	if err != nil {
		if options.verbose {
			progress("%s %s: %v", method, url, err)
		}
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
