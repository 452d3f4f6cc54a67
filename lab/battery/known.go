package battery

// A Known shortfall is a demand that the zero Policy is known not to meet in a world.
type Known struct {
	World  string
	Demand Demand
	Why    string
}

// Why the zero Policy does not meet a demand.
const (
	pauses  = "a process with few calls lets few pass while its breaker is open, and cannot know that there is no queue"
	blind   = "a process with few calls seldom has another one that was answered, and cannot tell a sick host from a line"
	invited = "a retry that the server asked for is free: it was put off, and comes in a later minute"
)

// KnownShortfalls are those of the part of the battery that go test flies (the quick size, one
// seed). The test fails when another appears, and when one of these has gone:
//
//	go test -tags lab ./lab/battery -run TestPart -shortfalls
//
// prints all that there are.
var KnownShortfalls = []Known{
	{"bh300-at10s-p100-r50-cancel", Back, pauses},
	{"bh300-at10s-p100-r5-cancel", Back, pauses},
	{"gw300-p100-r50-504in5s", Back, pauses},
	{"sick1of3-p100-at500ms", Floor, blind},
	{"maintenance-r10-p1", Attempts, invited},
}
