package torture

import (
	"fmt"
	"slices"
	"strings"
)

// An outcome is what a client did in a case. Its text is the rest of a sentence that begins with "it".
type outcome string

// Rules have the outcomes of a case, by the grade that a client gets for them. The verdict of the case and its text
// are made of them, and of nothing else.
type rules map[Grade][]outcome

// grade returns the grade of an outcome. A test sees that each outcome of a judge has one.
func (r rules) grade(o outcome) Grade {
	for grade, list := range r {
		if slices.Contains(list, o) {
			return grade
		}
	}
	panic(fmt.Sprintf("no rule for a client that %s", o))
}

// and returns the rules with more outcomes.
func (r rules) and(more rules) rules {
	both := rules{}
	for _, some := range []rules{r, more} {
		for grade, list := range some {
			both[grade] = slices.Concat(both[grade], list)
		}
	}
	return both
}

// text is the rules as the rest of a sentence that begins with "the client".
func (r rules) text() string {
	var parts []string
	for _, g := range []struct {
		grade Grade
		verb  string
	}{{Pass, "passes"}, {Warn, "is warned"}, {Fail, "fails"}, {NotApplicable, "has no grade"}} {
		var list []string
		for _, o := range r[g.grade] {
			list = append(list, string(o))
		}
		if len(list) > 0 {
			parts = append(parts, g.verb+" if it "+strings.Join(list, ", or "))
		}
	}
	return strings.Join(parts, "; ")
}

// What clients do. The judges find it out, and the rules of the cases grade it.
const (
	// in any case
	didNotEnd       outcome = "does not end before the case does"
	stillWaited     outcome = "still waits when the case ends"
	stillTried      outcome = "still tries when the case ends"
	nothingCame     outcome = "sends no request"
	noRetries       outcome = "makes no retries at all"
	oneAttempt      outcome = "makes one attempt (which shows nothing)"
	tooFew          outcome = "makes too few retries to judge"
	tooFewCalls     outcome = "makes too few calls to judge"
	callFailed      outcome = "reports a failure"
	tookTheAnswer   outcome = "takes the 200"
	reportedSuccess outcome = "reports success without a good answer"
	reportedFailure outcome = "reports the failure"
	gaveUp          outcome = "gives up by itself"
	noHTTP2         outcome = "does not speak HTTP/2 here"

	// failures that may be repeated
	again         outcome = "repeats it and takes the 200"
	againInVain   outcome = "gives up after it has repeated it"
	single        outcome = "does not repeat it"
	lostTheAnswer outcome = "goes on after an attempt was answered with 200 and reports a failure"
	couldNotUseIt outcome = "cannot use the 200 of a server that is not of its own service"
	noWait        outcome = "repeats it without a wait"
	tookHalf      outcome = "takes half an answer for a whole one"
	ownConnection outcome = "makes its second call on a new connection"
	fewAttempts   outcome = "gives up after at most ten attempts"
	manyAttempts  outcome = "makes more than ten attempts"

	// what must not be repeated
	sentOnce       outcome = "sends it once"
	sentAgain      outcome = "sends it again"
	ownKey         outcome = "sends it again with an Idempotency-Key that it made and that all attempts share"
	sentIt         outcome = "sends its request to that server"
	sentNothing    outcome = "sends nothing and does not connect again"
	connectedAgain outcome = "connects again"

	// bodies
	sameBytes   outcome = "sends the same bytes in each attempt"
	otherBytes  outcome = "sends other bytes in a later attempt"
	fewerBytes  outcome = "sends fewer bytes than its caller gave"
	otherType   outcome = "sends another Content-Type in a later attempt"
	noWholeBody outcome = "sends no body to its end"

	// hints
	keptHint       outcome = "comes back no earlier than asked"
	stayedAway     outcome = "does not come back"
	cameTooEarly   outcome = "comes back earlier than asked although it reads a Retry-After of seconds"
	ignoredHint    outcome = "comes back earlier than asked since it reads no Retry-After"
	repeatedUnread outcome = "repeats it since it does not read that field"
	ignoredField   outcome = "comes back earlier than asked since it does not read that field"
	cameBack       outcome = "comes back"
	overflowed     outcome = "comes back at once although it waits where there is no such field"

	// waits
	waited            outcome = "waits before it repeats it"
	onlyFirstAtOnce   outcome = "makes its first retry without a wait but not the others"
	hedges            outcome = "hedges (its next attempt follows on a failure at once)"
	oneRetry          outcome = "makes one retry"
	grew              outcome = "waits longer before later retries"
	didNotGrow        outcome = "waits no longer before later retries"
	stillGrows        outcome = "makes no retries of which the waits have stopped to grow"
	random            outcome = "draws its waits at random"
	notRandom         outcome = "waits for the same time always"
	spread            outcome = "spreads its retries in nearly all rounds"
	together          outcome = "makes more than four fifths of its retries at the same moment in nearly all rounds"
	sometimesTogether outcome = "does neither in nearly all rounds"

	// connections
	fewConnectionsMade outcome = "gives up after at most ten connections"
	manyConnections    outcome = "makes more than ten connections"
	oneConnection      outcome = "uses one connection for all attempts"
	newConnections     outcome = "makes new connections for its retries"
	fewForCalls        outcome = "uses at most half as many connections as calls"
	manyForCalls       outcome = "uses more than half as many connections as calls"
	fewHandshakes      outcome = "makes new handshakes for at most half of the retries"
	manyHandshakes     outcome = "makes new handshakes for more than half of the retries"
	unknownCA          outcome = "was not told of the certificate"

	// deadlines
	endedInTime     outcome = "ends at most four seconds after its time is up"
	endedLate       outcome = "ends more than four seconds after its time is up"
	endedInAShare   outcome = "ends at most a tenth of its time after it is up"
	endedOverAShare outcome = "ends more than a tenth of its time after it is up"
	noneAfterwards  outcome = "makes no attempt after its time is up"
	cameAfterwards  outcome = "makes an attempt after its time is up"
	gaveUpAtOnce    outcome = "gives up soon after the answer"
	slept           outcome = "waits until its time is nearly up for a retry that could only come later"
	cancelledIt     outcome = "cancels the attempt so that the server learns that nobody waits"
	leftOpen        outcome = "leaves an attempt open at the server"

	// volume and recovery
	fewMore        outcome = "makes at most 1.3 attempts for each call"
	manyMore       outcome = "makes more than 1.3 attempts for each call"
	atMostTwice    outcome = "makes at most twice as many attempts as calls"
	moreThanTwice  outcome = "makes more than twice as many attempts as calls"
	didNotMultiply outcome = "makes at most three attempts at the last service for each call"
	multiplied     outcome = "makes more than three attempts at the last service for each call"
	oneAtATime     outcome = "makes no call while another waits"
	breaks         outcome = "sends at most seven requests for ten calls"
	noBreaker      outcome = "sends more and so shows no circuit breaker"
	isBack         outcome = "lets at least half of the calls succeed three seconds after the end"
	staysDown      outcome = "fails more than half of the calls then"
	noCrowd        outcome = "makes at most twice as many retries as calls in any half second after the end"
	crowd          outcome = "makes more than twice as many retries as calls in half a second after the end"

	// hedging
	hedgedWell   outcome = "sends a second one beside it and cancels the one that lost"
	noHedge      outcome = "does not hedge"
	hedgedPOST   outcome = "sends a second POST beside the first"
	didNotDouble outcome = "makes at most 1.5 requests for each call"
	doubled      outcome = "makes more than 1.5 requests for each call"

	// keys
	sameKeys    outcome = "sends the same key in each attempt"
	severalKeys outcome = "sends different keys in the attempts of a call"
	noKey       outcome = "sends no key"
	sharedKey   outcome = "sends the same key in two calls"
	keyForEach  outcome = "sends one key in all attempts of a call and another in the next call"
)
