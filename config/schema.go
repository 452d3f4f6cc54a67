package config

import _ "embed"

// go test -run TestSchema -update writes it from the types and their comments.
//
//go:embed policy.schema.json
var policySchema string

// SchemaURL is where the latest [PolicySchema] is to be found.
const SchemaURL = "https://raw.githubusercontent.com/lullgo/lull/main/config/policy.schema.json"

// PolicySchema is a JSON Schema (draft 7, which editors know best) of policy files, for
// completion and for what is to be read when the mouse rests on a key. With the language
// server for YAML that most editors have, a file says where it is in its first line:
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/lullgo/lull/main/config/policy.schema.json
//
// or a path to a copy of it. What [ParsePolicyFile] takes it takes. It does not take
// keys that there are not and values of the wrong kind. What more is wrong with a file only
// the reader finds: a cap below its base, and how a number or a switch is spelt that YAML
// knows for one, such as 010, 0x10, +3 and True.
func PolicySchema() []byte { return []byte(policySchema) }
