package lullhttp

import (
	"errors"
	"reflect"

	"github.com/lullgo/lull"
)

// Error codes of HTTP/2 (RFC 9113, 7) that decide about another attempt.
const (
	h2NoError         = 0x0
	h2InternalError   = 0x2
	h2RefusedStream   = 0x7
	h2Cancel          = 0x8
	h2ConnectError    = 0xa
	h2EnhanceYourCalm = 0xb
)

// http2StreamError has the fields of the error of a stream that was reset. The type of net/http is
// not exported, but its method As fills in any struct with these fields.
type http2StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (http2StreamError) Error() string { return "stream error" }

// http2GoAway has the fields of the error of a stream whose connection ended after a GOAWAY.
type http2GoAway struct {
	LastStreamID uint32
	ErrCode      uint32
	DebugData    string
}

func classifyHTTP2(err error) (lull.Verdict, bool) {
	if code, ok := streamErrorCode(err); ok {
		return classifyStream(code), true
	}
	if v, ok := findShape[http2GoAway](err); ok {
		// The stream's number was not above the server's last, so it may have been served.
		// (net/http repeats the others itself.)
		return classifyGoAway(v.FieldByName("ErrCode").Uint() == h2EnhanceYourCalm), true
	}
	return lull.Verdict{}, false
}

// classifyGoAway returns what a GOAWAY means that ended a stream. calm: its code is
// ENHANCE_YOUR_CALM.
func classifyGoAway(calm bool) lull.Verdict {
	if calm {
		return classifyStream(h2EnhanceYourCalm)
	}
	return lull.Verdict{Kind: lull.KindTransient, Code: "http2_goaway"}
}

func classifyStream(code uint32) lull.Verdict {
	switch code {
	case h2RefusedStream:
		return lull.Verdict{Kind: lull.KindTransient, NeverSent: true, Code: "http2_refused_stream"}
	case h2EnhanceYourCalm:
		return lull.Verdict{Kind: lull.KindRateLimited, Code: "http2_enhance_your_calm"}
	case h2NoError, h2InternalError, h2Cancel, h2ConnectError:
		return lull.Verdict{Kind: lull.KindTransient, Code: "http2_stream_reset"}
	}
	// One side broke the protocol, or the server insists on HTTP/1.1.
	return lull.Verdict{Kind: lull.KindPermanent, Code: "http2_stream_error"}
}

func streamErrorCode(err error) (uint32, bool) {
	if se, ok := errors.AsType[http2StreamError](err); ok {
		return se.Code, true
	}
	v, ok := findShape[http2StreamError](err) // golang.org/x/net/http2 has no such As
	if !ok {
		return 0, false
	}
	return uint32(v.FieldByName("Code").Uint()), true
}

// findShape returns the struct in the chain of err with exactly the fields of T, by name and kind.
// It replaces As for the types that have none, in net/http and in golang.org/x/net/http2.
func findShape[T any](err error) (reflect.Value, bool) {
	want := reflect.TypeFor[T]()
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.ValueOf(err)
		if v.Kind() != reflect.Struct || v.NumField() != want.NumField() {
			continue
		}
		same := true
		for i := range want.NumField() {
			have, want := v.Type().Field(i), want.Field(i)
			same = same && have.Name == want.Name && have.Type.Kind() == want.Type.Kind()
		}
		if same {
			return v, true
		}
	}
	return reflect.Value{}, false
}
