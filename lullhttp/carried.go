package lullhttp

import (
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/lullgo/lull"
)

// classifyCarried returns what an error means that carries the response which it was made
// of, in an exported field of the type *http.Response: *oauth2.RetrieveError, the
// ErrorResponse of many clients of APIs, and azcore's ResponseError among them. They have
// no method in common, so it is the field that is looked for. That takes half a
// microsecond, and only for a failure of which nothing else is known.
func classifyCarried(err error) (lull.Verdict, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.ValueOf(err)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			continue
		}
		for i := range v.NumField() {
			resp, ok := responseIn(v, i)
			if ok && resp.StatusCode >= 400 {
				hint, ok := ParseHint(resp.Header, resp.StatusCode, time.Now())
				return classifyResponse(resp.StatusCode, hint, ok), true
			}
		}
	}
	return lull.Verdict{}, false
}

func responseIn(v reflect.Value, i int) (*http.Response, bool) {
	if v.Type().Field(i).Type != reflect.TypeFor[*http.Response]() || !v.Type().Field(i).IsExported() {
		return nil, false
	}
	resp, _ := v.Field(i).Interface().(*http.Response)
	return resp, resp != nil
}
