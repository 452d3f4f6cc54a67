package idempotency

import (
	"net/http"
	"strings"
)

// A Scope identifies callers. Each caller has its own keys, so that none can get the
// response of another by guessing or overhearing its key. A Scope returns an identity
// that stays the same for all attempts of one request, and false for a caller that
// it does not know; such a request is answered with 400, and observers get
// RefusedNoCaller. A caller also has a share of the store's room ([MemoryStore]): it must not
// be possible to become many callers for nothing. An empty identity with true
// means, explicitly, that all these callers share their keys.
//
// It must be safe for concurrent use. It runs before the body is read.
type Scope func(r *http.Request) (identity string, ok bool)

// AuthorizationScope is the default Scope: a caller is its Authorization header. A
// request without the header has no caller, and gets 400.
//
// Two callers with different credentials never share a key. But a caller whose token is renewed
// between two attempts is a new caller, and is carried out. If yours are, or have no
// Authorization header (cookies, client certificates), give [WithScope] a function that returns
// the account that your authentication found.
//
// What reaches the store is a hash; no credential can be read from it, though one
// with few possible values can be guessed and compared.
func AuthorizationScope(r *http.Request) (string, bool) {
	identity := strings.Join(r.Header["Authorization"], "\x00")
	return identity, identity != ""
}

// SharedScope is a Scope for servers whose callers all may see each other's
// responses, or are one.
func SharedScope(*http.Request) (string, bool) { return "", true }
