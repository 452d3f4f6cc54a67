package admission_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
	"github.com/lullgo/lull/server/admission"
)

// What the guide, docs/servers.md and the comment of the package show, as it stands there.

func guideServer(addr string, mux http.Handler) error { //outside: it is compiled, and not called
	handler, err := lullhttp.NewHandler(mux)
	if err != nil {
		return err
	}
	return http.ListenAndServe(addr, handler)
}

func guideTrust(mux http.Handler) (http.Handler, error) {
	handler, err := lullhttp.NewHandler(mux, lullhttp.WithTrust(lullhttp.TrustNobody))
	return handler, err
}

func guideAdmission(mux http.Handler, serve func(http.Handler)) error {
	admit, err := admission.NewMiddleware(admission.Config{})
	if err != nil {
		return err
	}
	handler, err := lullhttp.NewHandler(admit.Handler(mux))
	serve(handler)
	return err
}

func guideWarming(middleware *admission.Middleware, warm func()) error {
	gate := middleware.Gate()
	if err := gate.SetMax(4); err != nil {
		return err
	}
	warm() // your own
	if err := gate.SetMax(0); err != nil {
		return err
	}
	return nil
}

func packageComment(addr string, mux http.Handler) error { //outside: it is compiled, and not called
	m, err := admission.NewMiddleware(admission.Config{})
	if err != nil {
		return err
	}
	return http.ListenAndServe(addr, m.Handler(mux))
}

func TestWhatTheDocsShow(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	admitting := func(mux http.Handler) (h http.Handler, err error) {
		err = guideAdmission(mux, func(handler http.Handler) { h = handler })
		return h, err
	}
	for _, handler := range []func(http.Handler) (http.Handler, error){guideTrust, admitting} {
		h := must.Have(handler(mux))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil))
		check.Equal(t, w.Code, http.StatusTeapot, "status")
	}
	m := must.Have(admission.NewMiddleware(admission.Config{}))
	warmed := false
	if err := guideWarming(m, func() { warmed = true }); err != nil || !warmed {
		t.Errorf("%v, warmed: %v", err, warmed)
	}
	// A server that cannot listen ends at once.
	for _, serve := range []func(string, http.Handler) error{guideServer, packageComment} {
		if err := serve("127.0.0.1:-1", mux); err == nil {
			t.Error("it listens on port -1")
		}
	}
}
