package schema

import (
	"testing"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/clitest"
	"github.com/lullgo/lull/config"
)

// The command prints the schema, and nothing else.
func TestSchema(t *testing.T) {
	code, out, complaint := clitest.Run[Command](cli.Env{Context: t.Context()}, "schema")
	if code != cli.OK || out != string(config.PolicySchema()) || complaint != "" {
		t.Errorf("exit code %d, %q, printed\n%s", code, complaint, out)
	}
}
