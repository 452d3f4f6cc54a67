package config

import (
	_ "embed"
)

// go test -run TestSchema -update writes it from the types and their comments.
//
//go:embed policy.schema.json
var policySchema string

// SchemaURL is the address of the latest [PolicySchema].
const SchemaURL = "https://raw.githubusercontent.com/lullgo/lull/main/config/policy.schema.json"

// PolicySchema returns a JSON Schema of policy files, for completion and help in editors. It is of
// draft 7, which editors support best. With the language server for YAML that most editors have,
// the first line of a file names its schema:
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/lullgo/lull/main/config/policy.schema.json
//
// or a path to a copy of it. It accepts everything that [ParsePolicyFile] accepts, and refuses what
// that refuses: unknown keys, values of another kind, numbers and durations out of bounds. Only the
// reader finds
//
//   - what depends on other fields, since those may come from the defaults or a preset: a cap below
//     its base, a timeout beyond the deadline, a budget's floor without a window, a hedge beside
//     retries;
//   - names that nothing has: calls to a dependency or an operation that is not there, and two
//     services that provide the same;
//   - bounds of durations in several units (0h61m), and of numbers in quotes with an exponent ("1e9");
//   - what a schema is not shown: numbers and switches as YAML knows them and lull does not, such as
//     010, 0x10, +3 and True, tags, a second document, and a key that is set twice.
func PolicySchema() []byte { return []byte(policySchema) }
