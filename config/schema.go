package config

import _ "embed"

// go test -run TestSchema -update writes it from the types and their comments.
//
//go:embed policy.schema.json
var policySchema string

// SchemaURL is the address of the latest [PolicySchema].
const SchemaURL = "https://raw.githubusercontent.com/lullgo/lull/main/config/policy.schema.json"

// PolicySchema returns a JSON Schema of policy files, for completion and help in editors. It is of draft 7, which editors
// support best. With the language server for YAML that most editors have, the first line of a file names its schema:
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/lullgo/lull/main/config/policy.schema.json
//
// or a path to a copy of it. It accepts everything that [ParsePolicyFile] accepts, and refuses what that refuses: unknown keys,
// values of another kind, numbers and durations out of bounds. docs/files.md lists what only the reader finds, such as a cap
// below its base, and names that nothing has.
func PolicySchema() []byte { return []byte(policySchema) }
