package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/repeatable"
	"github.com/lullgo/lull/internal/response"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/idempotency"
)

// answer answers a request whose call has failed without a response.
func answer(w http.ResponseWriter, r *http.Request, err error) {
	failed := bodyFailure(r)
	if failed == http.StatusRequestTimeout {
		fail(w, r, failed, errors.New("the body of the request brought nothing for too long"), "http_request_error")
		return
	}
	if err == errTunnelled {
		return
	}
	if callOf(r.Context()).clientHasLeft() {
		panic(http.ErrAbortHandler)
	}
	status, h := http.StatusBadGateway, w.Header()
	var call *lull.Error
	called := errors.As(err, &call)
	verdict := lullhttp.ClassifyError(err)
	if called {
		giveUp(callOf(r.Context()))
		h.Set(attemptsHeader, strconv.Itoa(call.Attempts))
		h.Set(reasonHeader, call.Reason.String())
		verdict = call.Verdict
	}
	kind := proxyError(verdict)
	switch {
	case called && call.Verdict.CallerSide() && callOf(r.Context()).body.awaited() && call.Timeout() && !call.Verdict.NeverSent:
		status, kind = http.StatusRequestTimeout, "http_request_error"
	case errors.As(err, new(*http.MaxBytesError)):
		status, kind = http.StatusRequestEntityTooLarge, "http_request_denied"
	case failed > 0:
		status, kind = failed, "http_request_error"
	case errors.Is(err, errAddress):
		status, kind = http.StatusForbidden, "destination_ip_prohibited"
	case errors.Is(err, errUpgrade):
		kind = "http_upgrade_failed"
	case !called:
	case call.Attempts == 0 && call.Reason != engine.Deadline && call.Reason != engine.Canceled:
		status, kind = http.StatusServiceUnavailable, "proxy_internal_response"
		if call.Reason == engine.CircuitOpen {
			kind = "destination_unavailable"
		}
	case call.Verdict.Kind == engine.KindCallerTransient:
		status, kind = http.StatusServiceUnavailable, "connection_limit_reached"
	case call.Reason == engine.Limited, call.Reason == engine.Throttled:
		status = http.StatusServiceUnavailable
	case call.Timeout():
		status = http.StatusGatewayTimeout
		if !call.Verdict.NeverSent {
			kind = "http_response_timeout"
		}
	}
	unknown := called && (call.OutcomeUnknown || call.Verdict.CallerSide() && call.Attempts > 0 && !call.Verdict.NeverSent && !mayRepeat(r))
	if unknown && status >= 500 {
		status = outcomeUnknown(h, r, status)
	}
	if called && status >= 500 {
		if after := max(call.RetryAt, call.Verdict.After); after > 0 {
			response.SetRetryAfter(h, after)
		}
	}
	fail(w, r, status, err, kind)
}

// problemOutcomeUnknown is the problem type of a request that may have been carried out, and must not be carried out twice. Its
// status is 424 (Failed Dependency). Many clients repeat any request, also a POST, after a 502, 503 or 504, and so would carry it
// out twice; a 409 of a request that creates something often means that it is there already.
const problemOutcomeUnknown = "tag:lullgo.github.io,2026:outcome-unknown"

// outcomeUnknown returns the status of an answer with problemOutcomeUnknown. A client of gRPC gets the one that is given.
func outcomeUnknown(h http.Header, r *http.Request, status int) int {
	if isGRPC(r) {
		h["Grpc-Retry-Pushback-Ms"] = []string{"-1"} // no retry
		return status
	}
	h["X-Should-Retry"] = []string{"false"}
	return http.StatusFailedDependency
}

// proxyErrors are the types of RFC 9209, 2.3, for the codes of verdicts.
var proxyErrors = map[string]string{
	"dns": "dns_error", "nxdomain": "dns_error",
	"connection_refused": "connection_refused", "no_socket": "connection_refused", "backlog_full": "connection_refused",
	"unreachable": "destination_ip_unroutable",
	"timeout":     "connection_timeout",
	"certificate": "tls_certificate_error", "not_tls": "tls_protocol_error", "tls_alert": "tls_alert_received",
	"connection_reset": "connection_terminated", "connection_closed": "connection_terminated", "connection_lost": "connection_terminated",
	"http2_goaway": "connection_terminated", "http2_stream_reset": "connection_terminated",
	"http2_refused_stream": "destination_unavailable", "http2_enhance_your_calm": "destination_unavailable",
	"unexpected_eof":     "http_response_incomplete",
	"broken_response":    "http_protocol_error",
	"http2_stream_error": "http_protocol_error",
	"local_resources":    "connection_limit_reached",
}

// proxyError returns the type of RFC 9209 for an attempt that had no response.
func proxyError(v lull.Verdict) string {
	switch kind := proxyErrors[v.Code]; {
	case kind != "":
		return kind
	case v.NeverSent:
		return "destination_unavailable"
	case v.CallerSide():
		return "proxy_internal_error"
	}
	return "http_protocol_error"
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
	if status == http.StatusFailedDependency {
		body.Type, body.Title, body.OutcomeUnknown = problemOutcomeUnknown, "Outcome unknown", true
	}
	if c := callOf(r.Context()); c != nil {
		c.Own = true
		if call != nil {
			c.Reason = call.Reason
		}
	}
	h := w.Header()
	h.Set("Proxy-Status", "lull; error="+kind)
	if isGRPC(r) {
		failGRPC(w, status, body.Detail, call != nil && call.Reason.GaveUp())
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

// grpcStatuses are gRPC's for those of HTTP. Others are UNAVAILABLE.
var grpcStatuses = map[int]string{
	http.StatusBadRequest:            "13", // INTERNAL
	http.StatusForbidden:             "7",  // PERMISSION_DENIED
	http.StatusMethodNotAllowed:      "12", // UNIMPLEMENTED
	http.StatusRequestEntityTooLarge: "8",  // RESOURCE_EXHAUSTED
	http.StatusGatewayTimeout:        "4",  // DEADLINE_EXCEEDED
}

// failGRPC answers with a status of gRPC in a header alone (Trailers-Only).
func failGRPC(w http.ResponseWriter, status int, text string, gaveUp bool) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", cmp.Or(grpcStatuses[status], "14"))
	h.Set("Grpc-Message", percentEncoded(text, "%"))
	if gaveUp {
		stopGRPC(h)
	}
	w.WriteHeader(http.StatusOK)
}

// stopGRPC asks a client of gRPC not to retry a call whose status is in h (gRFC A6): retries would multiply those made here.
func stopGRPC(h http.Header) {
	if s := h.Get("Grpc-Status"); s != "" && s != "0" && len(h["Grpc-Retry-Pushback-Ms"]) == 0 {
		h["Grpc-Retry-Pushback-Ms"] = []string{"-1"}
	}
}

// percentEncoded returns text with its control characters, bytes beyond ASCII and those of more as "%20".
func percentEncoded(text, more string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c <= '~' && strings.IndexByte(more, c) < 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// quiet is for net/http: a failure is in the record of its request.
var quiet = log.New(io.Discard, "", 0)

// answerIngress answers a request that the application has not answered. Its clients are strangers: the error is for the log.
func answerIngress(w http.ResponseWriter, r *http.Request, err error) {
	c, v := callOf(r.Context()), lullhttp.ClassifyError(err)
	switch keyed := idempotency.KeyedRequestFrom(r.Context()) != nil; {
	case err == errTunnelled || c.clientHasLeft() || v.CallerSide() || errors.As(err, new(*http.MaxBytesError)) || bodyFailure(r) != 0:
		answer(w, r, err)
		return
	case v.NeverSent:
		idempotency.NoEffect(r.Context())
		response.SetRetryAfter(w.Header(), time.Second)
		fail(w, r, http.StatusServiceUnavailable, errors.New("the application is not there"), "connection_refused")
	case keyed:
		c.Error = err.Error()
		panic(http.ErrAbortHandler) // so nothing is recorded as the key's answer: the next request with it learns that nobody knows
	case errors.Is(err, context.DeadlineExceeded):
		fail(w, r, unlessSafe(w, r, http.StatusGatewayTimeout), errors.New("the application has not answered in time"), "http_response_timeout")
	default:
		fail(w, r, unlessSafe(w, r, http.StatusBadGateway), errors.New("the application has not answered"), proxyError(v))
	}
	c.Error = err.Error()
}

// unlessSafe returns status, or that of an unknown outcome if the request must not be carried out twice.
func unlessSafe(w http.ResponseWriter, r *http.Request, status int) int {
	if mayRepeat(r) {
		return status
	}
	return outcomeUnknown(w.Header(), r, status)
}

// mayRepeat reports whether carrying a request out twice is the same as once, as far as the request shows.
func mayRepeat(r *http.Request) bool {
	return repeatable.IsIdempotent(r.Method) || repeatable.IsKeyed(r.Header)
}
