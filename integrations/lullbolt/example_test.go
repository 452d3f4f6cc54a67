package lullbolt_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	lullbolt "github.com/lullgo/lull/integrations/lullbolt"
	"github.com/lullgo/lull/server/idempotency"
)

// A service remembers its keys across a restart.
func Example() {
	dir, err := os.MkdirTemp("", "lullbolt")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	payments := 0
	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payments++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	})
	for range 2 { // the process, and the one after it
		path := filepath.Join(dir, "keys.bolt")
		store, err := lullbolt.Open(path, lullbolt.Config{}) // such as /var/lib/payments/keys.bolt
		if err != nil {
			log.Fatal(err)
		}
		keys, err := idempotency.New(store, idempotency.Config{})
		if err != nil {
			log.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/payments", strings.NewReader(`{"amount": 100}`))
		r.Header.Set("Authorization", "Bearer alice")
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`)
		w := httptest.NewRecorder()
		keys.Wrap(pay).ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body, w.Header().Get("Idempotency-Replayed") == "true")

		if err := keys.Wait(context.Background()); err != nil {
			log.Fatal(err)
		}
		if err := store.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 201 payment 1 false
	// 201 payment 1 true
}

// One process has the file. A second one gets an error.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "lullbolt")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "keys.bolt")

	first, err := lullbolt.Open(path, lullbolt.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	_, err = lullbolt.Open(path, lullbolt.Config{LockTimeout: 100 * time.Millisecond})
	fmt.Println(errors.Is(err, lullbolt.ErrInUse))
	fmt.Println(strings.ReplaceAll(err.Error(), dir, "..."))
	// Output:
	// true
	// lullbolt: the file is in use; only one process at a time can open it, and only once: .../keys.bolt, after waiting for 100ms
}

// Expired entries are deleted as new keys come. Sweep deletes them at once:
func ExampleStore_Sweep() {
	dir, err := os.MkdirTemp("", "lullbolt")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := lullbolt.Open(filepath.Join(dir, "keys.bolt"), lullbolt.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ctx := context.Background()
	for i := range 3 {
		c := idempotency.Claim{Key: fmt.Sprint("key ", i), Lease: time.Millisecond, Retention: time.Millisecond}
		c.Token[0] = 1
		if _, err := store.Claim(ctx, c); err != nil {
			log.Fatal(err)
		}
	}
	time.Sleep(2 * time.Millisecond) //clock: they are past their time after a longer sleep, too
	deleted, err := store.Sweep(ctx)
	left, err2 := store.Len()
	fmt.Println(deleted > 0, left, err, err2)
	// Output: true 0 <nil> <nil>
}

func ExampleConfig_Validate() {
	fmt.Println(lullbolt.Config{LockTimeout: -time.Second, MaxBytes: 100}.Validate())
	// Output:
	// LockTimeout is -1s: want a positive duration, or 0 for the default of 1s
	// MaxBytes is 100: want at least 1 MiB, or 0 for the default of 8 GiB
}
