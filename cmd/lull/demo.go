package main

// demoFlags are text, so that all that is wrong with them can be said at once;
// setting reads them.
type demoFlags struct {
	Scenario   text   `placeholder:"storm" default:"storm" help:"What is shown: storm (backends go down, calls are retried) or tail (some requests are slow, calls are hedged). What differs in tail stands in brackets."`
	Duration   option `placeholder:"25s" help:"How long calls are made: 2s to 10m [28s]."`
	Load       option `placeholder:"0.75" help:"Calls per second, as a share of the capacity of a backend: 0.05 to 2."`
	Outage     text   `placeholder:"5s" help:"How long the backends are down [slow], 0s for not at all. They go down after 4s or a quarter of the duration [turn slow after 9s or a third]; default 5s or a fifth of the duration [6s or a quarter]."`
	Kind       option `placeholder:"stall" help:"What down means: stall (workers freeze, requests queue) or errors (a 503 at once). Storm only."`
	Timeout    option `placeholder:"500ms" help:"How long each attempt may take, whoever makes it [2s]."`
	Attempts   option `placeholder:"3" help:"The most attempts that a call makes: 1 to 10. Storm only."`
	Capacity   option `placeholder:"100" help:"Requests per second that a backend can serve: 10 to 2000 [280, while everything is slow]."`
	Queue      text   `placeholder:"N" help:"Requests that may wait at a backend: 1 to 100000. Default: as many as it serves in ten timeouts [in half a second]."`
	Tail       option `placeholder:"0.02" help:"The share of requests that take 50 times as long as most: 0 to 0.5. Tail only."`
	HedgeDelay option `placeholder:"20ms" help:"When the naive client sends its second request: 1ms to 10s. Tail only."`
	Clients    text   `placeholder:"NAMES" help:"Show only these, separated by commas: no-retry, immediate, fixed-interval, exponential, full-jitter, lull [no-hedging, naive, lull]."`
	Seed       text   `placeholder:"1" default:"1" help:"Draws the moments of the calls and the service times."`
	JSON       bool   `name:"json" help:"Print the figures as JSON on standard output, and progress on standard error."`
	Plain      bool   `help:"A line a second instead of the picture, as where there is no terminal."`
}

// Help is shown above the flags.
func (demoFlags) Help() string {
	return `Ways of calling side by side, each with an HTTP backend of its own on loopback.
The backends are alike: finite capacity and a queue. All clients make their
calls at the same moments. Then a table says what became of whom.

--scenario storm: six clients that retry. At the same second every backend goes
down, and comes back.

--scenario tail: three clients, of which two hedge: where an answer is late they
send a second request. One request in fifty takes 50 times as long as the
others. In the middle all do, for some seconds; the backends can just bear that,
and not twice as many requests.

Nothing is played back: requests are counted where they are sent or arrive,
results and times by the callers. Another setting may favour another client; the
flags are there to find it: no retry does as well in an outage that is short
enough (--outage 2s), and everybody in one of quick errors (--kind errors); in
the tail the naive hedger does no harm where there is capacity for two requests
a call (--load 0.4), and is quicker than lull, which hedges one call in twenty,
where more of the requests are slow (--tail 0.08). Ctrl-C ends the run and
prints what was measured until then.`
}

// Run runs the demo and prints what it found.
func (f demoFlags) Run(env surroundings) error {
	s, err := f.setting()
	if err != nil {
		return err
	}
	progress := env.stdout
	if f.JSON {
		progress = env.stderr
	}
	v := newView(s, progress, env.getenv)
	if f.JSON || f.Plain {
		v = &plain{out: progress}
	}
	r, err := runDemo(env.ctx, s, v)
	if err != nil {
		return err
	}
	switch {
	case f.JSON && s.Scenario == tail:
		return printTailJSON(env.stdout, r)
	case f.JSON:
		return printJSON(env.stdout, r)
	case s.Scenario == tail:
		return printTailTable(env.stdout, r)
	}
	return printTable(env.stdout, r)
}
