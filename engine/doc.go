// Package engine decides about calls to things that fail: may this call begin, is this
// failure worth another attempt, who pays for it, and how long to wait.
//
// It never reads a clock, sleeps, starts a goroutine, does I/O, or draws a random number of
// its own. It gets time and random numbers as arguments, and returns its decision as a
// value. So production and the simulator make the same decisions: in production by drivers
// on the real clock (packages lull, lullhttp, queue), and in package sim on a virtual clock,
// with up to 25 million clients. A test reads the source of this package and of its leaves,
// and fails if they break this rule.
//
// A [Plan] is a [Policy] made ready. A [State] is what one process remembers of one
// dependency under a plan. A [Call] is one logical call: it is started on a State, learns
// how each attempt ended, and answers each time with a [Step]. A [HedgedCall] is a call
// whose attempts may run beside one another, and a resumed call ([State.Resume]) is one
// whose first attempts were made by another process. One function decides for all three
// what follows when an attempt ends.
//
//	plan, err := engine.NewPlan(engine.Policy{}, engine.Parts{})
//	...
//	var s engine.State
//	plan.Init(&s, nil)
//	c, step := s.Start(now, engine.Spec{})  // may the call begin?
//	step = c.Attempt(now, random)           // may its first attempt?
//	step = c.Next(now, verdict, random)     // it ended like this: what now?
//
// Time is a duration since an epoch of the driver's choosing, the same for all calls to one
// State. Randomness is a source of 64 uniform bits; nil means the middle of every range.
// Users of the library need package lull, which adds the clock.
package engine
