package battery

// A known shortfall is a demand that the zero Policy is known not to meet in a world, and the price that this is.
type known struct {
	world  string
	demand Demand
	why    string
}

// Why the zero Policy does not meet a demand: the price of what it does.
const (
	pauses  = "where calls are few, an open breaker notices late that there is no queue"
	ended   = "an open breaker refuses calls that would have outlasted the hang"
	blind   = "where calls are few, timeouts are final, also those of a sick host"
	twice   = "a retry may meet the sick host again"
	stocked = "the stock pays for retries of quick failures"
	waited  = "rivals wait for less time before a retry, or retry less"
	cut     = "timeouts that cut off answers are seldom repeated: there may be no room"
	smaller = "Finagle's budget is larger: 20 %, and ten retries a second"
	partial = "the breaker opens where most attempts time out"
	crowded = "nobody is back, and more attempts wait in the queue"
	beside  = "not explained: others there retry without a budget"
	invited = "retries that the server asked for are free"
)

// knownShortfalls are those of the part of the battery that the tests fly (the quick size, one seed). TestPart fails when
// another appears, and when one of these has gone. It prints all that there are:
//
//	go test -tags lab ./lab/battery -run TestPart -shortfalls
//
// docs/defaults.md has a table of them, which this writes:
//
//	go test ./lab/battery -run TestPage -update
var knownShortfalls = []known{
	{"bh300-at10s-p1-r50-cancel", Success, ended},
	{"bh300-at10s-p100-r50-cancel", Success, ended},
	{"bh300-at10s-p100-r50-cancel", Back, pauses},
	{"bh300-at10s-p100-r5-cancel", Back, pauses},
	{"gw300-p100-r50-504in5s", Back, pauses},
	{"sick1of3-p100-at500ms", Held, twice},
	{"sick1of3-p100-at500ms", Undominated, blind},
	{"sick1of3-p100-at500ms", Floor, blind},
	{"peace-loss0.05-r50-p100", Undominated, blind},
	{"tight-timeout-p100", Undominated, cut},
	{"peace-err0.3-r50-p10", Undominated, smaller},
	{"slowok5s-err0.3-bursts4sper60-p10", Undominated, smaller},
	{"llm", Undominated, smaller},
	{"minute-p600-errors60", Undominated, stocked},
	{"cache-p100-q80-flush100", Undominated, stocked},
	{"maintenance-r10-p1", Attempts, invited},
	{"drift10-p100", Success, partial},
	{"drift10-p100", Undominated, partial},
	{"turn-quick-slow-p100", Success, pauses},
	{"turn-quick-slow-p100", Back, pauses},
	{"hole1of2-p100", Held, twice},
	{"hole1of2-p100", Undominated, blind},
	{"rare-p1000-stall1of20", Undominated, blind},

	// These are of worlds that only the lab flies.
	{"to200ms-p100-l0.8-stall10", Undominated, cut},
	{"cancel-p100-stall10", Success, ended},
	{"bh60-at1s-p100-cancel", Success, ended},
	{"flap-errors2of10-p1", Undominated, stocked},
	{"rl-spike3x60-hint0s-p1", Undominated, waited},
	{"bursts2x3s-p1", Undominated, waited},
	{"reload-p100-stall10", Held, crowded},
	{"mixed-p100-stall10", Undominated, beside},
	{"pool-sql-p100-brown20", Undominated, waited},
	{"narrow-p100-stall10", Undominated, cut},
	{"gc-p100-q500-stall10", Success, ended},
	{"gc-p100-q500-stall10", Undominated, ended},
	{"grid-errors10s-l0.9-p100000", Undominated, stocked},
}
