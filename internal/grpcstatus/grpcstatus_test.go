package grpcstatus_test

import (
	"encoding/base64"
	"testing"

	"github.com/lullgo/lull/internal/grpcstatus"
)

// Whatever a server sends, the wait is not negative. lullgrpc compares it with what protobuf reads.
func FuzzRetryDelay(f *testing.F) {
	f.Add([]byte("\x08\x0e\x12\x04busy\x1a\x2c\n(type.googleapis.com/google.rpc.RetryInfo\x12\x00"))
	f.Add([]byte("\x1a\x22\n\x14google.rpc.RetryInfo\x12\x0a\n\x08\x08\x01\x10\x80\xca\xb5\xee\x01"))
	f.Add([]byte("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, message []byte) {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
			if d := grpcstatus.RetryDelay(encoding.EncodeToString(message)); d < 0 {
				t.Errorf("%v", d)
			}
		}
		grpcstatus.RetryDelay(string(message))
	})
}
