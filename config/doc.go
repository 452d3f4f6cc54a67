// Package config reads and writes policies ([lull.Policy]) in files in YAML; [Live] reloads them in a running program, and
// [PolicySchema] is their JSON Schema for editors. A key that is misspelt and silently ignored leaves the default in force, and
// nobody notices before the outage. So nothing is ignored here: all [Mistakes] of a file are reported together, each with its
// place, what was found and what is allowed. Those that may only be a consequence of another one are left out.
//
// Keys are the names of the Go fields in snake case: AttemptTimeout is attempt_timeout. A field that a file does not have is
// zero, with the meaning that the field gives to zero. docs/files.md has the format. [PolicyFile] knows where each value comes
// from ([PolicyFile.Position], [PolicyFile.Origin]). The module needs go.yaml.in/yaml/v4, which has the place of every node and
// needs no other module. Only Live keeps state. Everything may be called concurrently, on values that are not shared.
package config
