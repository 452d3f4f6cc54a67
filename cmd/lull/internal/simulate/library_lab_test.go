//go:build lab

package simulate

import (
	"testing"

	"github.com/lullgo/lull/config"
)

func TestEveryScenarioGivesTheSameBytes(t *testing.T) {
	for _, s := range config.BuiltIn() {
		givesTheSameBytes(t, s)
	}
}
