package lullhttp

import (
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/lullgo/lull"
)

// classifyCarriedResponse returns what an error means that is a *StatusError, or carries a response
// in an exported field of the type *http.Response: *oauth2.RetrieveError, the ErrorResponse of many
// clients of APIs, azcore's ResponseError. They have no method in common, so it looks for the field
// by reflection. That takes half a microsecond, and only for a failure of which nothing else is
// known.
func classifyCarriedResponse(err error) (lull.Verdict, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if s, ok := err.(*StatusError); ok && s != nil && s.StatusCode >= 400 {
			return classifyHeader(s.StatusCode, s.Header), true
		}
		if resp := carriedResponse(err); resp != nil {
			return classifyHeader(resp.StatusCode, resp.Header), true
		}
	}
	return lull.Verdict{}, false
}

func classifyHeader(status int, h http.Header) lull.Verdict {
	hint, ok := ParseHint(h, status, time.Now())
	return classifyResponse(status, hint, ok)
}

func carriedResponse(err error) *http.Response {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if resp, _ := v.Field(i).Interface().(*http.Response); resp != nil && resp.StatusCode >= 400 {
			return resp
		}
	}
	return nil
}
