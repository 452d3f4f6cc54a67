package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/preset"
)

func TestProbe(t *testing.T) {
	p := &Page{ForceCircuits: true}
	w := ask(p, "OPTIONS", "/", "")
	fmt.Println("OPTIONS", w.Code, w.Header())
	w = ask(p, "PUT", "/", "")
	fmt.Println("PUT", w.Code, w.Header())
	for _, a := range []string{"application/json;q=0", "application/json-seq", "application/jsonlines, text/plain", "text/html;q=0, application/json", "application/json;q=0.1, */*;q=0.9", "text/html;q=0.1, application/json;q=1"} {
		w := ask(p, "GET", "/", "", "Accept", a)
		fmt.Println(a, "->", w.Header().Get("Content-Type"))
	}
	fmt.Println(strings.Contains(ask(p, "GET", "/", "").Body.String(), "none"))
	// huge names
	long := strings.Repeat("x", 128)
	a := must.Have(lull.NewDependency(long+"/a", lull.Policy{}, lull.WithObserver(p)))
	b := must.Have(lull.NewDependency(long+"/b", lull.Policy{}, lull.WithObserver(p)))
	p.Watch(a, b)
	lull.Run(t.Context(), a, func(context.Context) error { return lull.Permanent(errors.New("no")) })
	w = ask(p, "GET", "/?format=json", "")
	fmt.Println(w.Body.String())
	w = ask(p, "POST", "/", "dependency="+long+"%E2%80%A6&circuit=open")
	fmt.Println(w.Code, a.Breaker().Forced(), b.Breaker().Forced())

	// many
	many := &Page{}
	r := must.Have(lull.NewRegistry(preset.PerKey(), 1<<18, lull.WithObserver(many)))
	many.WatchAll(r.All)
	t0 := time.Now()
	for i := range 100000 {
		r.Get(fmt.Sprint("key", i))
	}
	fmt.Println("made", time.Since(t0))
	t0 = time.Now()
	w = ask(many, "GET", "/", "")
	fmt.Println("page", time.Since(t0), w.Body.Len())
	t0 = time.Now()
	w = ask(many, "GET", "/?format=json", "")
	fmt.Println("json", time.Since(t0), w.Body.Len(), json.Valid(w.Body.Bytes()))
	// invalid utf8 name
	bad := &Page{ForceCircuits: true}
	bd := must.Have(lull.NewDependency("a\xffb\nc<x>", lull.Policy{}, lull.WithObserver(bad)))
	bad.Watch(bd)
	body := ask(bad, "GET", "/", "").Body.Bytes()
	i := bytes.Index(body, []byte(`name="dependency"`))
	fmt.Printf("%q\n", body[i:i+60])
	fmt.Printf("%s\n", ask(bad, "GET", "/?format=json", "").Body.String())
	_ = httptest.NewRecorder
}
