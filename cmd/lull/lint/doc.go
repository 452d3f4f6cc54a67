// Package lint checks policy files (package config): whether a policy can do what it promises,
// before an outage shows that it cannot.
//
// # Why
//
// A policy can be valid and still be wrong. Its attempts may need more time than its deadline
// allows. Its deadline may be longer than the SLO of the service that waits. Three harmless
// policies in a row may make 64 attempts of one call. Nobody notices in normal operation, and
// in an outage nobody has time to calculate. So this package calculates, and prints the sums.
// Each finding has the problem in one sentence, the sum line by line, what to write instead,
// and a source. docs/lint.md lists the rules and what is read, and docs/examples/policies has
// files that break each rule, and the output for them. "lull lint" is the command.
//
// # What the sums rest on
//
// Times come from the engine: [lull.Policy.WorstCase], LongestWait and MaxAttempts. The sums that
// are printed add up to them, and a test checks that. A call has two worst cases: one with the
// waits that the policy draws, and one in which the server asks for the longest waits that the
// policy accepts. Where both matter, both are printed.
//
// Attempts multiply along the call graph. They only add up where lull's own rule holds
// (Policy.Nested: what is done for a retry is not retried again). That rule needs servers with
// lull's half, which the file must state (server: lull). For other servers the finding states
// what the rule would change. The engine has the same figures: a test compares them with
// several layers of it.
//
// After the changes of a fix the file is valid and the finding is gone. A test checks that for
// each fix, and for the files of all systems that package convert writes.
//
// # What it does not do
//
// It does not know the traffic: whether a policy is right for a load is a question for the
// simulator. It does not look at code. It takes the facts of a file (p99, idempotent, server,
// handler) as true, and does not complain about missing ones.
//
// # Cost
//
// A file of ten lines takes a tenth of a millisecond, one of 9,000 services up to a second. The
// worst ways through a call graph are found without trying all of them. At most 100 leaves are
// reported, the worst first, and at most 20 circles. Nothing here keeps state: all functions may be
// called concurrently.
package lint
