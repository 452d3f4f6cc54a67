//go:build !windows

package term

import "os"

// understandsEscapes reports whether a terminal obeys escape sequences.
func understandsEscapes(*os.File) bool { return true }
