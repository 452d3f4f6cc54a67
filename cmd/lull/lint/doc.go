// Package lint checks policy files (package config) and the files that package convert reads: whether a policy can do what
// it promises, before an outage shows that it cannot. A valid policy may have attempts that need more time than its deadline, and three
// harmless policies in a row may make 64 attempts of one call. Each finding has the problem in one sentence, the sum line by
// line, what to write instead, and a source. docs/lint.md lists the rules, and docs/examples/policies breaks each of them.
//
// Times and attempts are those of the engine ([lull.Policy.WorstCase]). A finding is gone after the changes of its fix, and
// the file is valid. Facts of a file (p99, idempotent, server, handler) are taken as true. Whether a policy is right for a load is a question
// for the simulator. A file of ten lines takes a tenth of a millisecond, one of 9,000 services up to a second. At most 100 leaves of the
// call graph and 20 circles are reported, the worst leaves first. Nothing here keeps state; all functions may be called concurrently.
package lint
