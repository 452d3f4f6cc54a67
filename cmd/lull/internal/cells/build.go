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
	sum := sha256.New()
	self, err := os.Executable()
	if err == nil {
		var program *os.File
		if program, err = os.Open(self); err == nil {
			defer program.Close()
			_, err = io.Copy(sum, program)
		}
	}
	if err != nil {
		return "unknown"
	}
	return "program " + hex.EncodeToString(sum.Sum(nil)[:8])
})
