package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

// pay is a request as a client sends it.
func pay(h http.Handler, key, body string) {
	req := httptest.NewRequest("POST", "/payments", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer alice")
	req.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem") {
		fmt.Println(w.Code, "a problem")
		return
	}
	show(w)
}

func show(w *httptest.ResponseRecorder) {
	line := strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Body))
	if w.Header().Get("Idempotency-Replayed") == "true" {
		line += " (replayed)"
	}
	fmt.Println(line)
}

func Example() {
	store, err := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{}) // one that outlives the process is better
	if err != nil {
		log.Fatal(err)
	}
	keys, err := idempotency.New(store, idempotency.Config{})
	if err != nil {
		log.Fatal(err)
	}
	payments := 0
	handler := keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payments++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	}))

	pay(handler, `"8e03978e-40d5-43e8-bc93-6894a57f9324"`, "100")
	pay(handler, `"8e03978e-40d5-43e8-bc93-6894a57f9324"`, "100")
	pay(handler, `"8e03978e-40d5-43e8-bc93-6894a57f9324"`, "999")
	// Output:
	// 201 payment 1
	// 201 payment 1 (replayed)
	// 422 a problem
}

func ExampleNoEffect() {
	store, _ := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
	keys, _ := idempotency.New(store, idempotency.Config{})
	bankIsUp := false
	handler := keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !bankIsUp {
			// Nothing has been done yet, so the client may try again with its key. Without
			// this line it would get this 502 for ever.
			idempotency.NoEffect(r.Context())
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		io.WriteString(w, "paid")
	}))

	pay(handler, "k1", "100")
	bankIsUp = true
	pay(handler, "k1", "100")
	pay(handler, "k1", "100")
	// Output:
	// 502
	// 200 paid
	// 200 paid (replayed)
}

func ExampleCommitted() {
	store, _ := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
	keys, _ := idempotency.New(store, idempotency.Config{})
	payments := 0
	handler := keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payments++
		idempotency.Committed(r.Context())
		// The receipt's printer is out of paper. A 503 with a time to come back would
		// mean "not done, try again", and the next attempt would pay again.
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))

	pay(handler, "k1", "100")
	pay(handler, "k1", "100")
	fmt.Println(payments, "payment")
	// Output:
	// 503
	// 503 (replayed)
	// 1 payment
}

// A handler that can find out what was done takes over from one that was interrupted.
func ExampleKeyedRequest() {
	store, _ := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
	keys, _ := idempotency.New(store, idempotency.Config{Resume: true})
	paid := map[string]bool{} // by key: the bank's books
	crash := true
	handler := keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := idempotency.KeyedRequestFrom(r.Context())
		if a.Resumed && paid[a.Key] {
			io.WriteString(w, "was paid already")
			return
		}
		paid[a.Key] = true
		if crash {
			panic("power failure")
		}
		io.WriteString(w, "paid")
	}))

	func() {
		defer func() { fmt.Println(recover()) }()
		pay(handler, "k1", "100")
	}()
	crash = false
	pay(handler, "k1", "100")
	pay(handler, "k2", "100")
	// Output:
	// power failure
	// 200 was paid already
	// 200 paid
}

func ExampleWithScope() {
	type account struct{} // the key under which the authentication puts it into the context
	store, _ := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithScope(func(r *http.Request) (string, bool) {
		id, ok := r.Context().Value(account{}).(string)
		return id, ok
	}))
	if err != nil {
		log.Fatal(err)
	}
	handler := keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "paid") }))
	for _, token := range []string{"first token", "renewed token"} {
		req := httptest.NewRequest("POST", "/payments", strings.NewReader("100"))
		req.Header.Set("Authorization", token)
		req.Header.Set("Idempotency-Key", "k1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), account{}, "alice")))
		show(w)
	}
	// Output:
	// 200 paid
	// 200 paid (replayed)
}

func ExampleWithPayload() {
	store, _ := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithPayload(func(r *http.Request, body []byte) []byte {
		amount, _, _ := bytes.Cut(body, []byte(" sent at ")) // differs between attempts
		return amount
	}))
	if err != nil {
		log.Fatal(err)
	}
	handler := keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "paid") }))
	pay(handler, "k1", "100 sent at 10:00")
	pay(handler, "k1", "100 sent at 10:01")
	pay(handler, "k1", "200 sent at 10:02")
	// Output:
	// 200 paid
	// 200 paid (replayed)
	// 422 a problem
}

func ExampleWithObserver() {
	store, _ := idempotency.NewMemoryStore(idempotency.MemoryStoreConfig{})
	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithObserver(func(_ context.Context, e idempotency.Event) {
		fmt.Println("event:", e.Kind, e.Status)
	}))
	if err != nil {
		log.Fatal(err)
	}
	handler := keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "paid") }))
	pay(handler, "k1", "100")
	pay(handler, "k1", "100")
	// Output:
	// event: ran 200
	// 200 paid
	// event: replayed 200
	// 200 paid (replayed)
}

// An operator who looks for an entry in the store finds it under this name.
func ExampleStoreKey() {
	fmt.Println(idempotency.StoreKey("Bearer alice", "8e03978e"))
	// Output:
	// nXzORh5LLwkKPWhrSuctJQ:8e03978e
}

func ExampleConfig_Describe() {
	fmt.Println(idempotency.Config{Retention: 72 * time.Hour}.Describe())
	// Output:
	// POST and PATCH requests need a header Idempotency-Key: a string in double quotes, of 1 to 255 printable ASCII characters, unique to the operation; a random UUID is best. A request that is repeated with the same key, method, target, credentials and body is not carried out again: it gets the first one's response, marked Idempotency-Replayed: true, or 409 while that is still running. A key is remembered for 3 days after its request. The body may have up to 1048576 bytes.
}

func ExampleConfig_Validate() {
	fmt.Println(idempotency.Config{Lease: time.Millisecond, MaxKey: 5000}.Validate())
	// Output:
	// Lease is 1ms: want a duration from 100ms to 1h, or 0 for the default of 30s
	// MaxKey is 5000: want 1 to 1024 characters, or 0 for the default of 255
}

func ExampleParseKey() {
	for _, value := range []string{`"8e03978e"`, `8e03978e`, `"not closed`} {
		fmt.Println(idempotency.ParseKey(value))
	}
	// Output:
	// 8e03978e true
	// 8e03978e true
	//  false
}
