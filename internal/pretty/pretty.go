// Package pretty writes values as people write them.
package pretty

import (
	"strings"
	"time"
)

// Duration is d as Go writes it, without the zeros that it ends in: 2m, not 2m0s.
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
