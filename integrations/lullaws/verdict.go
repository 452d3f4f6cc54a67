package lullaws

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver"
	"github.com/lullgo/lull/internal/attempt"
	"github.com/lullgo/lull/internal/owned"
	"github.com/lullgo/lull/lullhttp"
)

func verdictOf(err error, retryable bool) lull.Verdict {
	return lull.VerdictOf(err, func(err error) lull.Verdict {
		v := lull.Classify(err)
		if v.Code == "" || answered(err) {
			v.Code = errorCode(err)
		}
		switch {
		case throttles.IsErrorThrottle(err) == aws.TrueTernary || status(err) == http.StatusTooManyRequests:
			v.Kind, v.After = lull.KindRateLimited, waitHint(err)
		case retryable:
			v.Kind, v.After = lull.KindTransient, waitHint(err)
		case refusesCredentials(err):
			v.Kind = lull.KindUnclassified
		case answered(err):
			v.Kind = lull.KindPermanent
		}
		return v
	})
}

var throttles = retry.IsErrorThrottles(retry.DefaultThrottles)

// refusesCredentials reports whether the service has refused the credentials or permissions of the
// caller. That says nothing about the service, nor about the request: other credentials may succeed.
// The codes are those of the common errors of AWS that come with status 400.
func refusesCredentials(err error) bool {
	switch errorCode(err) {
	case "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidSignatureException", "MissingAuthenticationToken",
		"RequestExpired", "UnrecognizedClientException":
		return true
	}
	return status(err) == http.StatusUnauthorized || status(err) == http.StatusForbidden
}

func answered(err error) bool {
	var api smithy.APIError
	return response(err) != nil || errors.As(err, &api)
}

func errorCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() != "" {
		return api.ErrorCode()
	}
	if s := status(err); s != 0 {
		return "http_" + strconv.Itoa(s)
	}
	return ""
}

func response(err error) *http.Response {
	var r *smithyhttp.ResponseError
	if !errors.As(err, &r) || r.Response == nil || r.Response.Response == nil || r.Response.StatusCode == 0 {
		return nil // also the error of a request that had no answer
	}
	return r.Response.Response
}

func status(err error) int {
	if r := response(err); r != nil {
		return r.StatusCode
	}
	return 0
}

// waitHint returns how long the service wants to be left alone, or 0.
func waitHint(err error) time.Duration {
	r := response(err)
	if r == nil {
		return 0
	}
	if ms, err := strconv.ParseUint(r.Header.Get("X-Amz-Retry-After"), 10, 32); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	after, _ := lullhttp.ParseRetryAfter(r.Header.Get("Retry-After"), time.Now())
	return after
}

// detach keeps the attempt's context alive for the body of an answer that is still to be read, until that
// is closed. (A stream of events has no such body. It lives as long as the caller's context.)
func detach(ctx context.Context, result any) {
	if result == nil {
		return
	}
	if _, events := reflect.TypeOf(result).MethodByName("GetStream"); events {
		driver.Detach(ctx)
	} else if in := attempt.From(ctx); in != nil {
		owned.KeepContextFor(in, reflect.ValueOf(result), true)
	}
}
