// Package config reads and writes the files of lull in YAML: policies ([lull.Policy]) and scenarios
// ([sim.Scenario]). A running program can reload policy files. They have a JSON Schema for editors
// ([PolicySchema]).
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
// the field gives to zero. Values are
//
//	durations     250ms, 1.5s, 2m, 1h30m; a unit is required, except for 0
//	timeouts      the same, or none (lull.NoTimeout): attempt_timeout and deadline of a policy
//	hedge.delay   the same, or at-once (hedge.AtOnce)
//	whole numbers 500, 10k, 25M, 25_000_000
//	numbers       800, 1.5k, 2.5e-3
//	shares        0.1, 10%, "10 %" (ratios, rates of failure, loss); above 1 only as 250%
//	choices       the name, in any case: fifo, at-once, exponential
//	switches      true, false (and idempotent, which may be left out, too)
//	texts         any
//	lists         YAML lists of at most 10,000 elements, and as many names in a mapping
//	distributions 100ms (always the same), or a mapping: {kind: lognormal, mean: 20ms, sigma: 1}
//
// A distribution can also come from a file of measured times in the folder of the scenario or below
// it: {file: latencies.csv}. Each line is a bar of a histogram, with its upper bound and its weight,
// such as "20ms,350". Empty lines, lines that begin with #, and a first line "up_to,weight" are
// skipped.
//
// Anchors, aliases and merge keys (<<) of YAML work. These are mistakes:
//
//   - tags, more than one document in a file, a key that is set twice
//   - numbers with leading zeros, which are octal in one version of YAML and decimal in the next
//   - a share of 10, which may mean ten per cent or ten times
//   - a value that would be rounded to zero, since zero stands for the default
//   - files of more than 1 MiB, and more than 10,000 values that are reached by aliases
//   - text that is not UTF-8, control characters, and ends of lines that many editors do not
//     show: U+0085, U+2028, U+2029 and a carriage return by itself
//
// # Policy files
//
// A policy file has the policies of dependencies, and may have facts about the services that call
// them:
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/lullgo/lull/main/config/policy.schema.json
//	version: 1                  # of the format; 1 is the only one, and may be left out
//	defaults:                   # of every dependency, except for the fields that it sets
//	  preset: internal-service
//	  budget: {ratio: 5%}
//	dependencies:
//	  payments:                 # the name that lull.NewDependency is given
//	    attempts: 3
//	    deadline: 4s
//	    operations:             # facts about what it offers
//	      charge: {idempotent: false, keyed: true, p99: 400ms}
//	      status: {idempotent: true}
//	    p99: 120ms              # facts about it
//	    rate: 50
//	  maps:
//	    preset: external-api
//	    limit: {in_flight: 16}
//	services:                   # the call graph, for "lull lint"
//	  shop:
//	    slo: 2s
//	    calls:
//	      - maps
//	      - {dependency: payments, operation: charge}
//	  bank:
//	    provides: [payments]    # who answers it, so that layers can be followed
//	    server: lull            # and with lull's server half
//
// All parts may be left out. A dependency has the fields of a [lull.Policy] and of [Dependency];
// operations have those of [Operation], services those of [Service], and calls are names of
// dependencies or have the fields of an [Edge]. Facts change no policy: they are for the linter and
// for readers. Services may only call dependencies of the file, unless it has none: then it is the
// call graph of policies in other files. What a service provides may be a dependency in the file of
// its callers. "policies" is an older name of "dependencies". A file may also be the fields of one
// dependency alone, which is then called by the stem of the file.
//
// # Defaults, presets and overrides
//
// The policy of a dependency is put together field by field; the fields of parts count one by one
// (budget.ratio, budget.stock). Each of these overrides those before it:
//
//  1. the preset of the defaults,
//  2. the fields of the defaults,
//  3. the preset of the dependency,
//  4. the fields of the dependency.
//
// A dependency with a preset begins with that one, and has nothing of the preset of the defaults: a
// concurrency limit of internal-service would be wrong for an external-api. The fields of the
// defaults were written by hand, for all dependencies. The preset of a dependency overrides those
// that it sets, and the others remain. With the defaults above, maps has the four attempts of
// external-api and its three retries in stock, and a ratio of 5 %, because external-api does not
// set the ratio. A preset of package lull sets the fields that are not zero in it.
//
// A zero in the file is a value like any other: "stock: 0" replaces the preset's stock by the
// default of that field. The defaults must be valid by themselves, because dependencies that the
// file does not list have them as their policy.
//
// Presets are internal-service, external-api and background-worker, which are functions of package
// lull, and the clients of package preset that a policy can describe ([Presets]), such as
// go-retryablehttp, istio or hedged, to look at what a team has today. Such a client sets every
// field, so that nothing of the defaults remains; it may have no budget at all, for example. A
// policy cannot describe that a client ignores part of an answer, such as a Retry-After. Clients
// with a budget or a jitter that no policy can have, such as those of AWS and gRPC, are refused.
//
// [PolicyFile] has the result, and knows where each value comes from ([PolicyFile.Position],
// [PolicyFile.Origin]). Mistakes are reported at that place, too: if a timeout of the defaults is
// too long for the deadline of one dependency, the mistake is in the line of the defaults.
//
// # Reloading
//
// [Live] follows the changes of a policy file in a running program, without losing what budgets and
// breakers have learned. It takes a new file as a whole or not at all.
//
// # Scenario files
//
// A scenario file is one scenario:
//
//	name: stall
//	horizon: 6m
//	services:
//	  - name: api
//	    workers: 100
//	    queue: {limit: 10k}
//	    time: {kind: exponential, mean: 100ms}
//	    faults:
//	      - {kind: stall, at: 1m, for: 10s}
//	fleets:
//	  - name: clients
//	    calls: api
//	    processes: 25M
//	    arrivals: {kind: poisson, rate: 800}
//
// # Cost
//
// The module needs go.yaml.in/yaml/v4, which needs no other module. The YAML organisation maintains
// it, and it has the line and column of every node. Only Live keeps state. Everything may be called
// concurrently, on values that are not shared.
package config
