package lullhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/preset"
)

// What APIs of language models send with their failures decides when preset.LLM asks again, if at all.
func TestLLM(t *testing.T) {
	for name, c := range map[string]struct {
		status   int
		header   http.Header
		from, to time.Duration // of the wait; 0, 0: none
		reason   engine.Reason
	}{
		"529 (Anthropic)":         {529, nil, 0, 30 * time.Second, engine.Success},
		"529 with a time":         {529, http.Header{"Retry-After": {"20"}}, 20 * time.Second, 30 * time.Second, engine.Success},
		"429, retry-after-ms":     {429, http.Header{"Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond, 3 * time.Second, engine.Success},
		"503, retry-after-ms":     {503, http.Header{"Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond, 3 * time.Second, engine.Success},
		"429, a minute":           {429, http.Header{"Retry-After": {"60"}}, time.Minute, 90 * time.Second, engine.Success},
		"429, requests (OpenAI)":  {429, http.Header{"X-Ratelimit-Reset-Requests": {"20ms"}, "X-Ratelimit-Reset-Tokens": {"6m0s"}, "X-Ratelimit-Remaining-Tokens": {"149984"}}, 20 * time.Millisecond, 2 * time.Second, engine.Success},
		"429, tokens (OpenAI)":    {429, http.Header{"X-Ratelimit-Reset-Requests": {"20ms"}, "X-Ratelimit-Remaining-Requests": {"59"}, "X-Ratelimit-Reset-Tokens": {"6m0s"}}, 0, 0, engine.HintTooLong},
		"429, tokens (Anthropic)": {429, http.Header{"Anthropic-Ratelimit-Tokens-Remaining": {"0"}, "Anthropic-Ratelimit-Tokens-Reset": {"2000-01-01T00:00:30Z"}}, 30 * time.Second, 45 * time.Second, engine.Success},
		"500, do not":             {500, http.Header{"X-Should-Retry": {"false"}}, 0, 0, engine.Overloaded},
		"400":                     {400, nil, 0, 0, engine.Permanent},
	} {
		run(t, name, func(t *testing.T) {
			var at []time.Time
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				at = append(at, time.Now())
				if len(at) == 1 {
					return &http.Response{StatusCode: c.status, Header: c.header, Body: http.NoBody}, nil
				}
				time.Sleep(50 * time.Second) // to the first byte
				return answered(200)
			})
			req, _ := http.NewRequest("POST", "http://example.test/v1/messages", strings.NewReader("{}"))
			resp, err := client(t, preset.LLM(), lullhttp.WithBase(base), lullhttp.WithRoute("/v1/messages", lull.Idempotent())).Do(req)
			read(t, resp, err)
			check.Equal(t, lullhttp.OutcomeOf(resp).Reason, c.reason, "reason")
			if (len(at) > 1) != (c.reason == engine.Success) {
				t.Fatalf("%d attempts", len(at))
			}
			if len(at) > 1 {
				if wait := at[1].Sub(at[0]); wait < c.from || wait > c.to {
					t.Errorf("it waited for %v, want %v to %v", wait, c.from, c.to)
				}
			}
		})
	}
}

// An error in a stream that has begun is the caller's to read.
func TestLLMErrorInAStream(t *testing.T) {
	const stream = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"
	run(t, "", func(t *testing.T) {
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(stream))}, nil
		})
		req, _ := http.NewRequest("POST", host, strings.NewReader("{}"))
		resp, err := client(t, preset.LLM(), lullhttp.WithBase(base)).Do(req)
		check.Equal(t, read(t, resp, err), stream, "what came")
		check.Equal(t, lullhttp.OutcomeOf(resp), lullhttp.Outcome{Attempts: 1}, "outcome")
	})
}
