// Package schematest holds the JSON Schema of policy files against the reader of
// package config. It has tests and nothing else, and is a module of its own so that
// the validator they need is not a requirement of those who read a policy.
package schematest
