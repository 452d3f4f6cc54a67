// Package config reads and writes the files of lull: policies and scenarios, in
// YAML, straight from and into [lull.Policy] and [sim.Scenario].
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
//	retry.yaml:3:5: policies.api.atempts is unknown: want attempts, ... or preset; did you mean attempts?
//	retry.yaml:4:15: policies.api.deadline is "3 sec": want a duration such as 250ms, 1.5s or 2m, or "none"; did you mean 3s?
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
//	whole numbers 500, 10k, 25M, 25_000_000
//	numbers       800, 1.5k, 2.5e-3
//	shares        0.1, 10%, "10 %" (ratios, rates of failure, loss)
//	choices       the name, in any case: fifo, at-once, exponential
//	switches      true, false
//	texts         any
//	lists         YAML lists of at most 10,000 elements
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
// version of YAML, decimal in the next) are mistakes. So are files of more than
// 1 MiB, more than 10,000 values that are reached by aliases, and text that is
// not UTF-8.
//
// A policy file maps names to policies, each of which may begin with a preset of
// package lull and say only what differs:
//
//	policies:
//	  payments:
//	    attempts: 2
//	    deadline: 3s
//	    budget: {ratio: 5%}
//	  mail:
//	    preset: background-worker
//	    limit: {limit: 16}
//
// The fields of a single policy alone are a policy file, too; the policy is called
// by the stem of the file. A scenario file is one scenario:
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
// here keeps state; everything may be called by any number of goroutines at once,
// on values that are not shared.
package config
