// Package lint checks policy files (package config): whether what they promise can be
// kept, before an outage is the test.
//
// # Why
//
// A retry policy can be valid and still be wrong. Its attempts may not fit before its
// deadline, or its deadline not into the SLO of the service that waits; three harmless
// policies in a row may make 64 attempts of one; jitter: none looks like a matter of
// taste. Nobody sees it while all is well, and on the day that shows it nobody has time
// for sums. So the sums are done here, and printed: each finding says what is wrong in one
// sentence, how the figures come about line by line, what to write instead, and who says
// so:
//
//	bad/worst-case-over-slo-third.yaml:14:13: warning: calls to fraud-score may take 1.3s (2s if
//	the server asks for waits) of the 2s within which checkout must answer, more than a third (667ms)
//	   14 |     calls: [fraud-score]
//	      |             ^~~~~~~~~~~
//	        attempt 1                      150ms    150ms
//	        wait 1, at random below 100ms  100ms    250ms
//	        ...
//	      fix: write attempts: 2 and deadline: 660ms in dependencies.fraud-score; or ...
//
// docs/lint.md lists the rules, with bad and good examples; examples/policies has files
// that break each of them, and what is printed for them. Program lull runs them as
// lull lint.
//
// # What the sums rest on
//
// Times are those of the engine: [lull.Policy.WorstCase], LongestWait and MaxAttempts, and
// what is printed adds up to them (a test does the sums again). A call has two worst cases:
// its own, with the waits that the policy draws, and that in which the server asks for the
// longest waits that the policy is willing to make. Where both matter both are said.
//
// Attempts multiply along the call graph, but where lull's own rule makes them add up
// (Policy.Nested: what is done for a retry is not retried once more). That takes servers with
// lull's half in them, which is a fact that a file must state (server: lull); of others it is
// said what would be. The figures are those of the engine as well: a test runs it, layer upon
// layer.
//
// The changes that a fix speaks of end the finding, and leave a file that can be read: a
// test makes them.
//
// # What it does not do
//
// It does not know traffic: whether a policy is right for a load is a question for the
// simulator. It does not look at code. It believes the facts of a file (p99, idempotent,
// server, handler), and says nothing about what they leave out.
//
// # Cost
//
// A file of ten lines takes a tenth of a millisecond, one of 9,000 services up to a second. The
// worst ways of a call graph are found without trying all, and of leaves no more than 100 are
// reported, the worst first, of circles no more than 20.
// Nothing here keeps state: all functions may be called concurrently.
package lint
