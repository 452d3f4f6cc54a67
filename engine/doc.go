// Package engine decides about calls to things that fail: may this call begin, is this
// failure worth another attempt, who pays for it, and how long to wait.
//
// It never reads a clock, sleeps, starts a goroutine, does I/O, or draws a random number
// that it was not handed. Time comes in as an argument and the answer goes out as a value.
// So the same decisions are flown in production, by drivers on the real clock (packages
// lull, lullhttp, queue), and in package sim, with up to 25 million clients on a virtual
// one: what is simulated is what ships. A test reads the source of this package and of the
// leaves that it is made of, and fails if they do any of that.
//
// A [Plan] is a [Policy] made ready. A [State] is what one process remembers of one
// dependency under a plan. A [Call] is one logical call: it is started on a State, learns
// how each attempt ended, and answers each time with a [Step]. A [HedgedCall] is a call
// whose attempts may run beside one another, and a resumed call ([State.Resume]) is one
// whose first attempts were made by another process. What the end of an attempt means is
// decided in one place for all three.
//
//	plan, err := engine.NewPlan(engine.Policy{}, engine.Parts{})
//	var s engine.State
//	plan.Init(&s, nil)
//	c, step := s.Start(now, engine.Spec{})  // may the call begin?
//	step = c.Attempt(now, random)           // may its first attempt?
//	step = c.Next(now, verdict, random)     // it ended like this: what now?
//
// Time is a duration since an epoch of the driver's choosing, the same for all calls to one
// State. Randomness is a source of 64 uniform bits; nil stands for the middle of every
// range. Users of the library want package lull, which is where the clock is.
package engine
