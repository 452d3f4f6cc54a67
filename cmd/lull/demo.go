package main

// demoFlags are text, so that all that is wrong with them can be said at once;
// setting reads them.
type demoFlags struct {
	Duration text `placeholder:"25s" default:"25s" help:"How long calls are made: 2s to 10m."`
	Load     text `placeholder:"0.75" default:"0.75" help:"Calls per second, as a share of the capacity of a backend: 0.05 to 2."`
	Outage   text `placeholder:"5s" help:"How long the backends are down, 0s for not at all. They go down after 4s or a quarter of the duration; default 5s or a fifth of the duration."`
	Kind     text `placeholder:"stall" default:"stall" help:"What down means: stall (workers freeze, requests queue) or errors (a 503 at once)."`
	Timeout  text `placeholder:"500ms" default:"500ms" help:"How long each attempt may take, whoever makes it."`
	Attempts text `placeholder:"3" default:"3" help:"The most attempts that a call makes: 1 to 10."`
	Capacity text `placeholder:"100" default:"100" help:"Requests per second that a backend can serve: 10 to 2000."`
	Queue    text `placeholder:"N" help:"Requests that may wait at a backend: 1 to 100000. Default: as many as it serves in ten timeouts."`
	Clients  text `placeholder:"NAMES" help:"Show only these, separated by commas: no-retry, immediate, fixed-interval, exponential, full-jitter, lull."`
	Seed     text `placeholder:"1" default:"1" help:"Draws the moments of the calls and the service times."`
	JSON     bool `name:"json" help:"Print the figures as JSON on standard output, and progress on standard error."`
}

// Help is shown above the flags.
func (demoFlags) Help() string {
	return `Six ways of calling, each with an HTTP backend of its own on loopback. The
backends are alike: finite capacity and a queue. All clients make their calls at
the same moments. At the same second every backend goes down, and comes back.
Then a table says what became of whom.

Nothing is played back: attempts are counted by the backends, results and times
by the callers. Another setting may favour another client; the flags are there
to find it: no retry does as well in an outage that is short enough
(--outage 2s), and everybody in one of quick errors (--kind errors). Ctrl-C ends
the run and prints what was measured until then.`
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
	if f.JSON {
		v = &plain{out: progress}
	}
	r, err := runDemo(env.ctx, s, v)
	if err != nil {
		return err
	}
	if f.JSON {
		return printJSON(env.stdout, r)
	}
	return printTable(env.stdout, r)
}
