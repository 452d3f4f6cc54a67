package idempotency_test

import (
	"strings"
	"testing"

	"github.com/lullgo/lull/idempotency"
)

// What is published of an API is whether its requests need a key.
func TestDescribeOptionalKeys(t *testing.T) {
	for optional, want := range map[bool]string{false: "POST and PATCH requests need a header", true: "POST and PATCH requests may have a header"} {
		if got := (idempotency.Config{Optional: optional}).Describe(); !strings.HasPrefix(got, want) {
			t.Errorf("optional: %v: %q, want %q first", optional, got, want)
		}
	}
}
