//go:build servers

package demo

import (
	"os"
	"testing"

	"github.com/lullgo/lull/internal/pace"
)

// TestMain has the demos wait beside each other.
func TestMain(m *testing.M) {
	pace.Overlap(4)
	os.Exit(m.Run())
}
