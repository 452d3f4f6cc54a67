//go:build lab

package simulate

import (
	"github.com/lullgo/lull/lab/scenario"
	"testing"
)

func TestEveryScenarioGivesTheSameBytes(t *testing.T) {
	for _, s := range scenario.BuiltIn() {
		givesTheSameBytes(t, s)
	}
}
