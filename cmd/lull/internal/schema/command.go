// Package schema is the command lull schema. It prints the JSON Schema of policy files.
package schema

import (
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/config"
)

// Command is lull schema.
type Command struct{}

func (Command) Help() string {
	return `Prints the JSON Schema (draft 7) of policy files, for completion and help in
editors, and for validators that know nothing of lull.

  lull schema > policy.schema.json

With the language server for YAML, the first line of a policy file names it:
  # yaml-language-server: $schema=policy.schema.json

It refuses unknown keys, values of another kind, and numbers and durations out
of bounds. What a schema cannot express, such as an attempt timeout that must not
be longer than the deadline, only lull lint finds: docs/files.md lists it.`
}

// Run prints the schema.
func (Command) Run(env cli.Env) error {
	_, err := env.Stdout.Write(config.PolicySchema())
	return err
}
