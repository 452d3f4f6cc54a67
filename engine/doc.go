// Package engine decides about calls to things that fail: may a call begin, is a failure worth
// another attempt, does the budget pay, and how long is the wait. It reads no clock, never
// sleeps, starts no goroutine, does no I/O and draws no random number: time and randomness are
// arguments, decisions are values. So production and the simulator decide the same.
//
// A [Plan] is a [Policy] made ready. A [State] is what one process remembers of one dependency. A
// [Call] is one call, started on a State; it answers with a [Step]. See [Call] for the order, and
// docs/architecture.md for the whole. Users need package lull, which adds the clock.
package engine
