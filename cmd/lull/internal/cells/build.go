package cells

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
)

// Build names the build of this program: the version that the Go tool gave it, or a digest of the program where it
// has none or its source was changed. Two builds of the same name give the same results.
var Build = sync.OnceValue(func() string {
	if v := cli.ModuleVersion(); v != "" && !strings.Contains(v, "+dirty") {
		return v
	}
	self, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	f, err := os.Open(self)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "unknown"
	}
	return "program " + hex.EncodeToString(sum.Sum(nil)[:8])
})
