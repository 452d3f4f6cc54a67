package response

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// Problem answers with body, which is problem details (RFC 9457): strings and numbers with the names of JSON.
// Fields that are set in w stay. No cache may keep the answer.
func Problem(w http.ResponseWriter, status int, body any) {
	text := must.Have(json.Marshal(body))
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // if the client has gone, nothing else can be done
}

// SetRetryAfter sets Retry-After in h to the seconds of a positive duration, rounded up.
func SetRetryAfter(h http.Header, after time.Duration) {
	h.Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
}
