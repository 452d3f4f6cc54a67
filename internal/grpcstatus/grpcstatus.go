// Package grpcstatus has what a status of gRPC means, for those that have grpc-go and those that
// have only the header or the trailer of a response.
package grpcstatus

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/saturating"
)

// The codes with a meaning of their own, by number.
const (
	ok                = 0
	canceled          = 1
	unknown           = 2
	deadlineExceeded  = 4
	permissionDenied  = 7
	ResourceExhausted = 8
	aborted           = 10
	unimplemented     = 12
	internal          = 13
	Unavailable       = 14
	dataLoss          = 15
	unauthenticated   = 16
)

// Names are the names of the codes, by number.
var Names = [...]string{
	"ok", "cancelled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists",
	"permission_denied", "resource_exhausted", "failed_precondition", "aborted", "out_of_range",
	"unimplemented", "internal", "unavailable", "data_loss", "unauthenticated",
}

// Name returns the name of a code for a verdict that has a meaning.
func Name(code uint32) string {
	switch {
	case code == deadlineExceeded:
		return engine.CodeTimeout
	case int(code) < len(Names):
		return Names[code]
	}
	return "unknown"
}

// KindOf returns what a code means, and its name in the verdict. lullgrpc.Classify has the reasons.
func KindOf(code uint32) (engine.VerdictKind, string) {
	switch code {
	case ok:
		return engine.KindSuccess, ""
	case Unavailable, deadlineExceeded:
		return engine.KindTransient, Name(code)
	case ResourceExhausted:
		return engine.KindRateLimited, Name(code)
	case internal, unknown, dataLoss, canceled:
		return engine.KindUnclassified, engine.CodeUnclassified
	case unauthenticated, permissionDenied, unimplemented, aborted:
		return engine.KindUnclassified, Name(code)
	}
	if code > unauthenticated {
		return engine.KindUnclassified, engine.CodeUnclassified // not a code of gRPC
	}
	return engine.KindPermanent, Name(code)
}

// WithHint returns v with the server's hint: no other attempt, or a wait for it (0: not requested).
// ok is false if there was neither, or none counts.
func WithHint(v engine.Verdict, stop bool, after time.Duration) (_ engine.Verdict, ok bool) {
	switch {
	case v.Kind != engine.KindTransient && v.Kind != engine.KindRateLimited:
		return v, false
	case stop:
		v.Kind = engine.KindOverloaded
	case after > 0:
		v.Kind, v.After = engine.KindRateLimited, after
	default:
		return v, false
	}
	return v, true
}

// tooLarge matches what implementations of gRPC report, with RESOURCE_EXHAUSTED, of a message or of
// metadata that is larger than a limit. They are grpc-go, core (C++, Python, Ruby), java, node and dotnet.
var tooLarge = regexp.MustCompile(`(?i)message (?:after decompression )?larger than max(?: length allowed on current machine)? (?:\(\d+ vs\.? \d+\)|\d+)` +
	`|grpc message exceeds maximum size \d+` +
	`|message (?:that decompresses to|with) a size larger than \d+` +
	`|message exceeds the maximum configured message size` +
	`|message too large (?:\(\d+ bytes\)|\d+ > \d+)` +
	`|metadata size exceeds hard limit \(`)

// TooLarge reports whether the text of a RESOURCE_EXHAUSTED is that of gRPC itself about a message
// or metadata that is larger than a limit.
func TooLarge(message string) bool { return tooLarge.MatchString(message) }

const maxSeconds = 315_576_000_000 // of a google.protobuf.Duration

// RetryDelay is RetryDelayIn for the value of Grpc-Status-Details-Bin.
func RetryDelay(details string) time.Duration {
	status, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(details, "="))
	if err != nil {
		return 0
	}
	return RetryDelayIn(status)
}

// RetryDelayIn returns the longest wait in the google.rpc.RetryInfo details of a google.rpc.Status as it is sent. Malformed and
// negative waits are ignored.
func RetryDelayIn(status []byte) (longest time.Duration) {
	eachField(status, func(field uint64, _ uint64, detail []byte) {
		var name string
		var info []byte
		if field != 3 || !eachField(detail, func(field uint64, _ uint64, b []byte) {
			switch field {
			case 1:
				name = string(b)
			case 2:
				info = b
			}
		}) || name[strings.LastIndexByte(name, '/')+1:] != "google.rpc.RetryInfo" {
			return
		}
		eachField(info, func(field uint64, _ uint64, delay []byte) {
			var seconds, nanos int64
			if field == 1 && eachField(delay, func(field uint64, n uint64, _ []byte) {
				switch field {
				case 1:
					seconds = int64(n)
				case 2:
					nanos = int64(n)
				}
			}) && seconds >= 0 && seconds <= maxSeconds && nanos >= 0 && nanos < int64(time.Second) {
				delay := time.Duration(math.MaxInt64)
				if seconds <= int64(delay/time.Second) {
					delay = saturating.Add(time.Duration(seconds)*time.Second, time.Duration(nanos))
				}
				longest = max(longest, delay)
			}
		})
	})
	return longest
}

// eachField calls f with the number and the value of each field of a protobuf message that has only
// integers and bytes. It reports whether the message is well-formed.
func eachField(message []byte, f func(field uint64, number uint64, b []byte)) bool {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return false
		}
		value, m := binary.Uvarint(message[n:]) // of bytes, their length
		if m <= 0 {
			return false
		}
		message = message[n+m:]
		switch {
		case tag&7 == 0:
			f(tag>>3, value, nil)
		case tag&7 == 2 && value <= uint64(len(message)):
			f(tag>>3, 0, message[:value])
			message = message[value:]
		default:
			return false
		}
	}
	return true
}
