//go:build servers

package main

import (
	"runtime"
	"testing"
)

// What lull exec passes on is no success either, if it could be written in part.
func TestRule24AnOutputOfExecThatIsWrittenInPart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no echo to run here")
	}
	cannotBeWritten(t, "exec -- echo hello")
}
