package lullhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/lullgo/lull/lullhttp"
)

func ExampleParseHint() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := http.Header{}
	h.Set("X-RateLimit-Remaining", "0")
	h.Set("X-RateLimit-Reset", "1772366460")
	hint, ok := lullhttp.ParseHint(h, http.StatusForbidden, now)
	fmt.Println(hint.After, hint.Source, ok)

	h.Set("X-Should-Retry", "false")
	hint, ok = lullhttp.ParseHint(h, http.StatusForbidden, now)
	fmt.Println(hint.Stop, hint.Source, ok)
	// Output:
	// 1m0s X-Ratelimit-Reset true
	// true X-Should-Retry true
}

func ExampleParseRetryAfter() {
	now := time.Date(1994, 11, 6, 8, 49, 7, 0, time.UTC)
	for _, v := range []string{"120", "Sun, 06 Nov 1994 08:49:37 GMT", "99999999999999999999", "-1"} {
		wait, ok := lullhttp.ParseRetryAfter(v, now)
		fmt.Println(wait, ok)
	}
	// Output:
	// 2m0s true
	// 30s true
	// 2562047h47m16.854775807s true
	// 0s false
}

func ExampleParseProblem() {
	p, ok := lullhttp.ParseProblem([]byte(`{
		"type": "https://example.com/problems/maintenance",
		"title": "Back soon",
		"status": 503,
		"retry_after": 90
	}`))
	fmt.Println(p.Type, p.Status, p.Hint.After, ok)
	// Output:
	// https://example.com/problems/maintenance 503 1m30s true
}

func ExampleClassifyStatus() {
	for _, status := range []int{200, 404, 429, 503} {
		v := lullhttp.ClassifyStatus(status)
		fmt.Printf("%s %q\n", v.Kind, v.Code)
	}
	// Output:
	// success ""
	// permanent "404"
	// rate_limited "429"
	// transient "503"
}

func ExampleClassifyError() {
	v := lullhttp.ClassifyError(context.DeadlineExceeded)
	fmt.Println(v.Kind, v.Code)
	// Output:
	// transient timeout
}

// The ID by which the server knows the request that failed, for logs and for its operators.
func ExampleStatusError_RequestID() {
	err := &lullhttp.StatusError{StatusCode: 503, Header: http.Header{"X-Request-Id": {"req-7f3a"}}}
	fmt.Println(err, err.RequestID())
	// Output: server answered 503 Service Unavailable req-7f3a
}
