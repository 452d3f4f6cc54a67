// Package config reads and writes policies ([lull.Policy]) in files in YAML. A running program can reload them. They
// have a JSON Schema for editors ([PolicySchema]).
//
// # Mistakes
//
// A key that is misspelt and silently ignored leaves the default in force, and nobody notices
// before the outage. So nothing is ignored here. All mistakes of a file are reported together,
// each with its file, line and column, the path of the field, what was found, what is allowed and,
// if something is similar, a suggestion:
//
//	retry.yaml:3:5: dependencies.api.atempts is unknown: want preset, attempts, ... or rate; did you mean attempts?
//	retry.yaml:4:15: dependencies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m, or "none"; did you mean 3s?
//
// Problems that the Validate methods find are reported in the same way, at the line of the field
// or, if the file does not have the field, of what it belongs to. Mistakes that may only be a
// consequence of another one are left out. See [Mistakes].
//
// # The format
//
// Keys are the names of the Go fields in snake case: AttemptTimeout is attempt_timeout. There is no
// second schema beside the types. A field that a file does not have is zero, with the meaning that
// the field gives to zero. A policy file has the policies of dependencies, and may have facts about
// the services that call them:
//
//	defaults:                   # of every dependency, except for the fields that it sets
//	  preset: internal-service
//	  budget: {ratio: 5%}
//	dependencies:
//	  payments:                 # the name that lull.NewDependency is given
//	    attempts: 3
//	    deadline: 4s
//	  maps:
//	    preset: external-api
//
// A preset is a policy of package preset. The program lull also knows other clients, to examine them; see
// [Presets].
//
// docs/files.md has the rest: how values are written, operations and services, how defaults, presets
// and overrides are put together, and scenario files. [PolicyFile] has the result, and knows where
// each value comes from ([PolicyFile.Position], [PolicyFile.Origin]).
//
// # Reloading
//
// [Live] follows the changes of a policy file in a running program, without losing what budgets and
// breakers have learned. It takes a new file as a whole or not at all.
//
// # Cost
//
// The module needs go.yaml.in/yaml/v4, which needs no other module. The YAML organisation maintains
// it, and it has the line and column of every node. Only Live keeps state. Everything may be called
// concurrently, on values that are not shared.
package config
