// Package engine decides about calls to things that fail: may this call begin, is this
// failure worth another attempt, who pays for it, and how long to wait.
//
// It never reads a clock, sleeps, starts a goroutine, does I/O, or draws a random number of
// its own: it gets time and random numbers as arguments, and returns its decision as a value.
// So production and the simulator make the same decisions.
//
// A [Plan] is a [Policy] made ready. A [State] is what one process remembers of one
// dependency under a plan. A [Call] is one logical call: it is started on a State, learns
// how each attempt ended, and answers each time with a [Step]. The attempts of a [HedgedCall]
// may run beside one another, and another process may have made the first attempts of a
// resumed call ([State.Resume]).
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
