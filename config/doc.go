// Package config reads and writes the files of lull: policies and scenarios, in
// YAML, straight from and into [lull.Policy] and [sim.Scenario]. Policy files can be
// reloaded while a program runs, and have a JSON Schema for editors ([PolicySchema]).
//
// # Why files of their own kind of reader
//
// A retry policy is read most carefully on the worst day. A key that is misspelt
// and silently ignored leaves the default in force, and nobody learns of it
// before the outage. So nothing is ignored here: every mistake of a file is
// reported, all of them at once, with file, line and column, the path of the
// field, what was found, what is allowed, and, where something comes near, what
// was probably meant:
//
//	retry.yaml:3:5: dependencies.api.atempts is unknown: want preset, attempts, ... or rate; did you mean attempts?
//	retry.yaml:4:15: dependencies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m, or "none"; did you mean 3s?
//
// That holds for what the types' own Validate finds as well: it is reported at
// the line of the field or, if the file does not mention it, of what the field
// belongs to. What may only follow from a mistake that is reported already is left
// out. See [Mistakes].
//
// # The format
//
// Keys are the names of the Go fields in snake case: AttemptTimeout is
// attempt_timeout. There is no second schema beside the types: a field that is
// added to them can be written at once. What a file leaves out is zero, and zero
// means what the field says. Values are
//
//	durations     250ms, 1.5s, 2m, 1h30m; a unit is required, but for 0
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
// A distribution can also come from a file of measured times that lies beside the
// scenario or below it: {file: latencies.csv}. It has a line for each bar of a
// histogram, with its upper bound and its weight, such as "20ms,350"; empty lines
// and lines that begin with # are skipped, and so is a first line
// "up_to,weight".
//
// Anchors, aliases and merge keys (<<) of YAML work. Tags, more than one document
// in a file, a key that is set twice, and numbers with leading zeros (octal in one
// version of YAML, decimal in the next) are mistakes. So is what two readers would take for
// two things: a share of 10, which is ten per cent to one and ten times to the other, and
// what is so small that it would be rounded to zero, which stands for the default. So are
// files of more than 1 MiB, more than 10,000 values that are reached by aliases, text that
// is not UTF-8, control characters, and ends of lines that many editors do not show:
// U+0085, U+2028, U+2029 and a carriage return by itself.
//
// # Policy files
//
// A policy file says how each dependency is called, and may say what is known of the
// services that call them:
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/lullgo/lull/main/config/policy.schema.json
//	version: 1                  # of the format; 1 is the only one, and may be left out
//	defaults:                   # what every dependency has unless it says otherwise
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
//	    limit: {limit: 16}
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
// All parts may be left out. A dependency has all the fields of a [lull.Policy] and those
// of [Dependency]; operations those of [Operation], services those of [Service], and calls
// are names of dependencies or have the fields of an [Edge]. Facts change no policy: they
// are for the linter and for readers. What services call must be among the dependencies, if
// the file has any; one without may be the call graph alone, to policies in other files.
// What a service provides may be a dependency in the file of those who call it.
// Dependencies may stand under "policies", the older name. The fields of one dependency
// alone are a file, too, and it is called by the stem of the file.
//
// # Defaults, presets and overrides
//
// What holds for a dependency is put together field by field, in which those of parts
// count one by one (budget.ratio, budget.stock). Each of these stands above those before:
//
//  1. the preset of the defaults,
//  2. the fields of the defaults,
//  3. the preset of the dependency,
//  4. the fields of the dependency.
//
// Whoever names a preset for a dependency has chosen another starting point, so of the
// first nothing is left then: a concurrency limit that comes with internal-service is not
// for what is an external-api. The fields of the defaults were written by hand, for
// all. The dependency's preset overrules those that it speaks of, and the others
// remain: under the defaults above maps has the four attempts of external-api, its three
// retries in stock, and the ratio of 5 %, about which external-api says nothing. A
// preset of package lull speaks of the fields that are not zero in it.
//
// A zero in the file is as good a value as any: "stock: 0" takes the preset's stock
// away, and leaves what the zero of that field means. The defaults must be valid by
// themselves, since they are the policy of what the file does not list.
//
// Presets are internal-service, external-api and background-worker, which are functions
// of package lull, and those clients of package preset which a policy can be ([Presets]),
// such as go-retryablehttp, istio or hedged: for what a team has today and wants to look
// at. Such a client is one as a whole, with what it does not do as well, so nothing of the
// defaults remains beside it; not their ratio, for it may have no budget at all. What it
// does not read in an answer (a Retry-After) is nothing that a policy says. Clients
// with a budget or a jitter of a kind of their own, such as those of AWS and gRPC, would be
// others without, and are refused.
//
// [PolicyFile] has the result, and knows where each value comes from
// ([PolicyFile.Position], [PolicyFile.Origin]). Mistakes are reported there too: a
// timeout that is too long for one dependency's deadline, and comes from the defaults, is
// shown in their line.
//
// # Reloading
//
// [Live] keeps the policies of a program that runs as the file has them, while it runs,
// without forgetting what budgets and breakers have learned. It takes a file whole or not
// at all.
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
// The module needs go.yaml.in/yaml/v4, which itself needs nothing: it is kept by
// the YAML organisation, and gives the line and column of every node. Nothing
// here keeps state but Live; everything may be called by any number of goroutines at
// once, on values that are not shared.
package config
