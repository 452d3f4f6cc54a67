package redial

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/neterr"
	"github.com/lullgo/lull/lullhttp"
)

// Drain marks the error with which a connection ended: the server has announced the end, and
// gives its clients that long to move. The dial is made at a random moment within it. An err that
// is nil is replaced by one; over that is not positive changes nothing.
func Drain(err error, over time.Duration) error {
	err = cmp.Or(err, errors.New("redial: the server drains its connections"))
	if over <= 0 {
		return err
	}
	return &drained{err, over}
}

type drained struct {
	error
	over time.Duration
}

func (e *drained) Unwrap() error { return e.error }

// Upgrade returns the error of a dial by HTTP (a WebSocket, server-sent events) with what the
// response says: how long to wait (Retry-After and its relatives, see lullhttp.ParseHint), and
// whether it is a refusal (a 403), which ends [Keep] before a connection has lasted. err is the
// error of the library, which may be nil. resp is the response that came with it, which may be nil
// as well; its body is not touched. A response that is a success changes nothing.
func Upgrade(err error, resp *http.Response) error {
	if resp == nil {
		return err
	}
	v := lullhttp.ClassifyStatus(resp.StatusCode)
	if v.Kind == lull.KindSuccess {
		return err
	}
	err = cmp.Or(err, fmt.Errorf("redial: the server answered with %s", resp.Status))
	hint, _ := lullhttp.ParseHint(resp.Header, resp.StatusCode, time.Now())
	switch {
	case hint.After > 0:
		return lull.RetryAfter(err, hint.After)
	case v.Kind == lull.KindPermanent:
		return &refused{err, v}
	}
	return lull.Transient(err)
}

// refused is the refusal of a server. It is no mark of the program: the server may change its mind.
type refused struct {
	error
	verdict lull.Verdict
}

func (e *refused) Unwrap() error { return e.error }

// ParseRetry returns the reconnection time of a retry field of server-sent events: the value of a
// line "retry: 3000". As the standard has it, a value that is not made of digits alone is
// ignored. Return lull.RetryAfter with it when the stream ends.
func ParseRetry(value string) (d time.Duration, ok bool) {
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0, false
	}
	ms, err := strconv.ParseUint(value, 10, 64)
	if err != nil || ms > math.MaxInt64/uint64(time.Millisecond) {
		return math.MaxInt64, true
	}
	return time.Duration(ms) * time.Millisecond, true
}

func verdict(err error) lull.Verdict { return lull.VerdictOf(err, classify) }

func classify(err error) lull.Verdict {
	if code, ok := closeCode(err); ok {
		return ofClose(code)
	}
	if e, ok := errors.AsType[*refused](err); ok {
		return e.verdict
	}
	return lull.Classify(err)
}

// final reports whether the program itself has marked err as permanent.
func final(err error) bool {
	v := lull.VerdictOf(err, func(error) lull.Verdict { return lull.Verdict{} })
	return v.Kind == lull.KindPermanent && v.Code != engine.CodeRetriedBelow
}

// closeCode returns the status of a WebSocket's close frame: the field Code of a type CloseError.
func closeCode(err error) (code int, ok bool) {
	neterr.AnyOf(err, func(e error) bool {
		v := reflect.ValueOf(e)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct || v.Type().Name() != "CloseError" {
			return false
		}
		switch f := v.FieldByName("Code"); {
		case f.CanInt():
			code, ok = int(f.Int()), true
		case f.CanUint():
			code, ok = int(f.Uint()), true
		}
		return ok
	})
	return code, ok
}

// After the close code 1012 a client is to wait for 5 to 30 s, by the IANA registry.
const (
	serviceRestart = 1012
	restartWait    = 5 * time.Second
	restartOver    = 25 * time.Second
)

// restartSpread returns the time over which dials are spread after the end of a connection.
func restartSpread(err error) time.Duration {
	if code, ok := closeCode(err); ok && code == serviceRestart {
		return restartOver
	}
	return 0
}

// tryLater is the least wait after the close code 1013, which has no time of its own.
const tryLater = 10 * time.Second

// ofClose returns the verdict on a close code of RFC 6455 and of the IANA registry.
func ofClose(code int) lull.Verdict {
	v := lull.Verdict{Kind: lull.KindTransient, Code: "websocket_" + strconv.Itoa(code)}
	switch code {
	case 1002, 1003, 1007, 1008, 1009, 1010: // what this side sent was wrong, and will be again
		v.Kind = lull.KindPermanent
	case serviceRestart:
		v.After = restartWait
	case 1013: // try again later
		v.Kind, v.After = lull.KindRateLimited, tryLater
	}
	return v
}
