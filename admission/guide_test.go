package admission_test

import (
	"net/http"

	"github.com/lullgo/lull/admission"
	"github.com/lullgo/lull/lullhttp"
)

// What the guide shows of servers must compile as it stands there. It listens for ever, so it is
// not run.

func guideServer(mux http.Handler) error {
	handler, err := lullhttp.NewHandler(mux)
	if err != nil {
		return err
	}
	return http.ListenAndServe("127.0.0.1:8080", handler)
}

func guideTrust(mux http.Handler) (http.Handler, error) {
	handler, err := lullhttp.NewHandler(mux, lullhttp.WithTrust(lullhttp.TrustNobody))
	return handler, err
}

func guideAdmission(mux http.Handler) error {
	admit, err := admission.NewMiddleware(admission.Config{})
	if err != nil {
		return err
	}
	handler, err := lullhttp.NewHandler(admit.Handler(mux))
	_ = handler
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

var _, _, _, _ = guideServer, guideTrust, guideAdmission, guideWarming
