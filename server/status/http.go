package status

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
)

const (
	maxForm    = 16 << 10 // bytes of a POST
	maxRefresh = 3600     // seconds
	mostShown  = 100      // dependencies on the page; JSON has all
)

// contentPolicy lets a browser use the page's own style, and send its forms to where it came from. Nothing else.
var contentPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// ServeHTTP answers GET and HEAD with the page or JSON, and POST if ForceCircuits is set.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		p.show(w, r)
	case r.Method == http.MethodPost && p.ForceCircuits:
		p.force(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD")
		if p.ForceCircuits {
			w.Header().Set("Allow", "GET, HEAD, POST")
		}
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

func (p *Page) show(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	h.Set("X-Content-Type-Options", "nosniff")
	s := p.read()
	if wantsJSON(r) {
		h.Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s) // an error is the connection's
		return
	}
	v := view{snapshot: s, Refresh: refresh(r), Force: p.ForceCircuits, All: len(s.Dependencies)}
	v.Dependencies = v.Dependencies[:min(v.All, mostShown)]
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", contentPolicy)
	w.Write(v.html())
}

func wantsJSON(r *http.Request) bool {
	if format := r.URL.Query().Get("format"); format != "" {
		return format == "json"
	}
	named := map[string]bool{}
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		mediaType, _, _ := strings.Cut(one, ";")
		named[strings.ToLower(strings.TrimSpace(mediaType))] = true
	}
	return named["application/json"] && !named["text/html"]
}

// refresh returns after how many seconds the browser shall load the page again; zero: never.
func refresh(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("refresh"))
	if err != nil || n < 1 || n > maxRefresh {
		return 0
	}
	return n
}

// force forces circuits open or closed, or ends that.
func (p *Page) force(w http.ResponseWriter, r *http.Request) {
	if err := new(http.CrossOriginProtection).Check(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	change, found := map[string]func(*breaker.Breaker, time.Duration){
		"open": (*breaker.Breaker).ForceOpen, "closed": (*breaker.Breaker).ForceClosed, "auto": (*breaker.Breaker).Auto,
	}[r.PostFormValue("circuit")]
	if !found {
		http.Error(w, `circuit: want "open", "closed" or "auto"`, http.StatusBadRequest)
		return
	}
	found = false
	p.dependencies(func(d *lull.Dependency) {
		if b := d.Breaker(); b != nil && key(d.Name()) == r.PostFormValue("dependency") {
			change(b, d.Now())
			found = true
		}
	})
	if !found {
		http.Error(w, "dependency: there is none with that name and a circuit breaker", http.StatusNotFound)
		return
	}
	w.Header().Set("Location", "?refresh="+strconv.Itoa(refresh(r))) // the page itself, wherever it is
	w.WriteHeader(http.StatusSeeOther)
}
