package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/response"
	"github.com/lullgo/lull/lullhttp"
)

// answer answers a request whose call has failed without a response.
func answer(w http.ResponseWriter, r *http.Request, err error) {
	if failed := bodyFailure(r); failed == http.StatusRequestTimeout {
		fail(w, r, failed, errors.New("the body of the request brought nothing for too long"), "http_request_error")
		return
	}
	if errors.Is(err, context.Canceled) && r.Context().Err() == context.Canceled {
		panic(http.ErrAbortHandler) // nobody is there
	}
	if err == errTunnelled {
		return
	}
	status, kind := http.StatusBadGateway, "destination_unavailable"
	var call *lull.Error
	if !errors.As(err, &call) {
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			status, kind = http.StatusRequestEntityTooLarge, "http_request_error"
		} else if failed := bodyFailure(r); failed > 0 {
			status, kind = failed, "http_request_error"
		}
		fail(w, r, status, err, kind)
		return
	}
	giveUp(r.Context())
	h := w.Header()
	h.Set(AttemptsHeader, strconv.Itoa(call.Attempts))
	h.Set(ReasonHeader, call.Reason.String())
	switch {
	case errors.Is(err, errAddress):
		status, kind = http.StatusForbidden, "destination_ip_prohibited"
	case call.Verdict.CallerSide() && call.Verdict.Code != engine.CodeRetriedBelow:
		status, kind = http.StatusBadRequest, "http_request_error"
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		} else if failed := bodyFailure(r); failed > 0 {
			status = failed
		} else if c := callOf(r.Context()); c != nil && c.body.awaited() && call.Timeout() && !call.Verdict.NeverSent {
			status = http.StatusRequestTimeout
		} else if call.Verdict.Kind == engine.KindCallerTransient {
			status, kind = http.StatusServiceUnavailable, "proxy_internal_response"
		}
	case call.Reason == engine.CircuitOpen && call.Attempts == 0:
		status, kind = http.StatusServiceUnavailable, "destination_unavailable"
		if call.RetryAt > 0 {
			response.SetRetryAfter(h, call.RetryAt)
		}
	case call.Reason == engine.Limited, call.Reason == engine.Throttled, call.Reason == engine.TooManyWaiting && call.Attempts == 0:
		status, kind = http.StatusServiceUnavailable, "connection_limit_reached"
	case call.Timeout():
		status, kind = http.StatusGatewayTimeout, "http_response_timeout"
		if call.Verdict.NeverSent {
			kind = "connection_timeout"
		}
	case call.Verdict.NeverSent:
		kind = "connection_refused"
	case call.Verdict.Code != "":
		kind = "http_response_incomplete"
	}
	fail(w, r, status, err, kind)
}

// problem is the body of an answer of the proxy's own.
type problem struct {
	Type           string `json:"type"`
	Title          string `json:"title"`
	Status         int    `json:"status"`
	Detail         string `json:"detail"`
	Reason         string `json:"reason,omitempty"`
	Attempts       int    `json:"attempts"`
	OutcomeUnknown bool   `json:"outcome_unknown,omitempty"`
}

// fail answers with a failure of the proxy's own. kind is a proxy error type of RFC 9209.
func fail(w http.ResponseWriter, r *http.Request, status int, err error, kind string) {
	body := problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detailOf(err)}
	var call *lull.Error
	if errors.As(err, &call) {
		body.Reason, body.Attempts, body.OutcomeUnknown = call.Reason.String(), call.Attempts, call.OutcomeUnknown
	}
	if c := callOf(r.Context()); c != nil {
		c.Own = true
	}
	h := w.Header()
	h.Set("Proxy-Status", "lull; error="+kind)
	if isGRPC(r) {
		failGRPC(w, status, body.Detail)
		return
	}
	if status == http.StatusBadRequest && r.ProtoMajor == 1 {
		h.Set("Connection", "close")
	}
	response.Problem(w, status, body)
}

// detailOf returns the text of err without the URL, which the client knows.
func detailOf(err error) string {
	if u := new(url.Error); errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

func isGRPC(r *http.Request) bool {
	return r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// failGRPC answers with a status of gRPC in a header alone (Trailers-Only), by gRPC's table for the statuses of HTTP.
func failGRPC(w http.ResponseWriter, status int, text string) {
	code := "14" // UNAVAILABLE
	switch status {
	case http.StatusBadRequest:
		code = "13" // INTERNAL
	case http.StatusForbidden:
		code = "7" // PERMISSION_DENIED
	case http.StatusRequestEntityTooLarge:
		code = "8" // RESOURCE_EXHAUSTED
	case http.StatusGatewayTimeout:
		code = "4" // DEADLINE_EXCEEDED
	}
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", code)
	h.Set("Grpc-Message", percentEncoded(text))
	w.WriteHeader(http.StatusOK)
}

// percentEncoded returns text as Grpc-Message has it.
func percentEncoded(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			b.WriteString(percent(c))
		}
	}
	return b.String()
}

type errorText string

func (e errorText) Error() string { return string(e) }

// quiet is for httputil.ReverseProxy: a failure is in the record of its request.
var quiet = log.New(io.Discard, "", 0)

// buffers are for copying bodies.
var buffers bufferPool

type bufferPool struct{ pool sync.Pool }

func (b *bufferPool) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *bufferPool) Put(p []byte) { b.pool.Put(&p) }

// answerIngress answers a request that the application has not answered.
func answerIngress(w http.ResponseWriter, r *http.Request, err error) {
	v := lullhttp.ClassifyError(err)
	switch {
	case err == errTunnelled:
	case errors.Is(err, context.DeadlineExceeded):
		fail(w, r, http.StatusGatewayTimeout, err, "http_response_timeout")
	case v.NeverSent:
		response.SetRetryAfter(w.Header(), time.Second)
		fail(w, r, http.StatusServiceUnavailable, err, "connection_refused")
	default:
		answer(w, r, err)
	}
}
