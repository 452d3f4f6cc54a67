package simulate

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// assumedMemory is used if the available memory is not known.
const assumedMemory = 4 << 30

// availableMemory returns how many bytes may be used without swapping, from Linux's
// /proc/meminfo. It ignores the limit of a container.
func availableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return assumedMemory
	}
	if n, ok := memAvailable(string(text)); ok {
		return n
	}
	return assumedMemory
}

// memAvailable reads the line "MemAvailable:    1234 kB".
func memAvailable(meminfo string) (int64, bool) {
	for line := range strings.Lines(meminfo) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemAvailable:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err == nil && n >= 0 && n < math.MaxInt64>>10
		}
	}
	return 0, false
}
