package serviceconfig

import (
	"fmt"
	"slices"
	"strings"
)

// A Code is a status code of gRPC, by its number.
type Code uint32

// The codes that matter to a policy.
const (
	OK                Code = 0
	DeadlineExceeded  Code = 4
	ResourceExhausted Code = 8
	Unavailable       Code = 14
	unauthenticated   Code = 16
)

var codeNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
	"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// String returns the name of the code, such as "UNAVAILABLE", or the number of a code that gRPC
// does not have.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint32(c))
}

// CodeOf returns the code of that name, in any case.
func CodeOf(name string) (Code, bool) {
	i := slices.IndexFunc(codeNames[:], func(s string) bool { return strings.EqualFold(s, name) })
	return Code(max(i, 0)), i >= 0
}
