package torture

import (
	"io"
	"net/http"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

func deadlineCases() []Case {
	const source = "SRE book, Addressing Cascading Failures: deadlines; gRFC A6: the deadline covers all attempts"
	within := func(timeout time.Duration, name, does string, plays answer, judge func(*Seen) finding, r rules) Case {
		return Case{Name: "deadline-" + name, Does: does, Source: source, timeout: timeout,
			script: []answer{plays}, judge: judge, rules: r, maybeBusy: mayHideThatItIsInTime, judgedWhenBusy: true, retriedLonger: true}
	}
	share := func(name, does string, plays answer) Case {
		c := within(5*time.Second, name, does, plays, inAShare, rules{Pass: {endedInAShare}, Warn: {endedOverAShare}, Fail: {reportedSuccess, didNotEnd}, NotApplicable: {nothingCame}})
		c.limit = time.Minute
		return c
	}
	silent := answer{fault: faultSilent}
	inItsTime := rules{Pass: {endedInTime}, Warn: {endedLate}, Fail: {reportedSuccess, didNotEnd}, NotApplicable: {nothingCame}}
	notAfterwards := rules{Pass: {noneAfterwards}, Warn: {cameAfterwards}, NotApplicable: {nothingCame}}
	return []Case{
		within(time.Second, "silent", "does not answer; the call has one second", silent, inTime, inItsTime),
		within(time.Second, "cancel", "does not answer; the call has one second", silent, cancelled, rules{Pass: {cancelledIt}, Fail: {leftOpen, didNotEnd}, NotApplicable: {nothingCame}}),
		within(time.Second, "attempts", "does not answer; the call has one second", silent, wholeCall, notAfterwards),
		within(2*time.Second, "retries", "answers every GET with 503; the call has two seconds", answer{status: 503}, wholeCall, notAfterwards),
		share("share", "does not answer; the call has five seconds", silent),
		share("share-503", "answers every GET with 503 after a second; the call has five seconds", answer{status: 503, delay: time.Second}),
		within(2*time.Second, "body", "sends a body without an end, a byte at a time; the call has two seconds", answer{status: 200, fault: faultTrickle}, inTime, inItsTime),
		{Name: "deadline-hint", Does: "answers with 503 and Retry-After: 30; the call has four seconds", Source: "AWS SDKs, retry behaviour; gRFC A6", timeout: 4 * time.Second,
			script: []answer{{status: 503, header: []string{"Retry-After: 30"}, wait: 30 * time.Second}, good}, judge: noSleep, maybeBusy: mayHideWhetherItSleeps, judgedWhenBusy: true, retriedLonger: true,
			rules: rules{Pass: {gaveUpAtOnce}, Warn: {slept, endedLate}, Fail: {cameTooEarly, didNotEnd}, NotApplicable: {ignoredHint, noRetries, nothingCame}}},
		{Name: "deadline-none", Does: "does not answer; the caller has set no timeout", Source: "AWS Builders' Library: set a timeout on any remote call",
			script: []answer{silent}, judge: ownTimeout, rules: rules{Pass: {gaveUp}, Warn: {stillWaited}}},
	}
}

var (
	faultSilent  = &fault{name: "silent"}  // nothing, until the client goes
	faultTrickle = &fault{name: "trickle"} // a body of which a byte comes now and then
)

// trickle writes a body without an end, a byte at a time.
func (s *site) trickle(w http.ResponseWriter) {
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := io.WriteString(w, "x"); err != nil || flush.Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-s.ended:
			panic(http.ErrAbortHandler)
		}
	}
}

const (
	endedInTime     outcome = "ends at most four seconds after its time is up"
	endedLate       outcome = "ends more than four seconds after its time is up"
	endedInAShare   outcome = "ends at most a tenth of its time after it is up"
	endedOverAShare outcome = "ends more than a tenth of its time after it is up"
	noneAfterwards  outcome = "makes no attempt after its time is up"
	cameAfterwards  outcome = "makes an attempt after its time is up"
	gaveUp          outcome = "gives up by itself"
	gaveUpAtOnce    outcome = "gives up soon after the answer"
	slept           outcome = "waits until its time is nearly up for a retry that could only come later"
	cancelledIt     outcome = "cancels the attempt so that the server learns that nobody waits"
	leftOpen        outcome = "leaves an attempt open at the server"
)

// A caller's time begins in the client, before its first request arrives. How long the client had needed
// until then, such as a process to start, is no matter: all is judged from the first arrival on.

// mayHideThatItIsInTime reports whether a busy machine can be why a client with a timeout is
// warned: it ended or came late, or its time was up before its request arrived. After the latter the next try
// has twice the time, and is twice as generous.
func mayHideThatItIsInTime(s *Seen) bool {
	if s.call().Ended != "" {
		return false
	}
	return len(s.first()) == 0 || s.Late > usualLateness && s.graded().Grade == Warn
}

func inTime(s *Seen) finding {
	return endsBy(s, s.Case.timeout+s.Case.slackFor(slack), endedInTime, endedLate)
}

// inAShare is inTime for a timeout that is so long that a share of it is more than what a busy machine adds.
func inAShare(s *Seen) finding {
	return endsBy(s, s.Case.timeout+s.Case.timeout/10, endedInAShare, endedOverAShare)
}

// endsBy judges by the time from the first arrival on until which a call must have ended.
func endsBy(s *Seen, most time.Duration, punctually, tooLate outcome) finding {
	call, list := s.call(), s.first()
	if len(list) == 0 {
		return did(nothingCame, "nothing arrived: %s", words.Short(call.Text))
	}
	took := call.End - list[0].Arrived
	switch {
	case call.OK:
		return did(reportedSuccess, "it reported success")
	case call.Ended != "":
		return did(didNotEnd, "the call had %s, and had not ended after %s", words.Rounded(s.Case.timeout), words.Rounded(took))
	case took > most:
		return did(tooLate, "the call had %s and took %s", words.Rounded(s.Case.timeout), words.Rounded(took))
	}
	return did(punctually, "the call had %s and ended after %s", words.Rounded(s.Case.timeout), words.Rounded(took))
}

// late returns the first attempt that came when the caller's time was surely up.
func late(s *Seen) (Attempt, bool) {
	list := s.first()
	for _, a := range list[1:] {
		if a.Arrived > list[0].Arrived+s.Case.timeout+s.Case.slackFor(500*time.Millisecond) {
			return a, true
		}
	}
	return Attempt{}, false
}

func wholeCall(s *Seen) finding {
	list := s.first()
	if len(list) == 0 {
		return did(nothingCame, "nothing arrived")
	}
	if a, found := late(s); found {
		return did(cameAfterwards, "attempt %d came %s after the first; the caller had set %s", a.Number, words.Rounded(a.Arrived-list[0].Arrived), words.Rounded(s.Case.timeout))
	}
	return did(noneAfterwards, "%s, none after the %s that the caller had set", words.Plural(len(list), "attempt"), words.Rounded(s.Case.timeout))
}

// noSleep is the judge of a wait that would end after the deadline.
func noSleep(s *Seen) finding {
	call, list := s.call(), s.first()
	switch {
	case len(list) == 0:
		return did(nothingCame, "nothing arrived")
	case len(list) > 1 && !s.hints:
		return did(ignoredHint, "the client does not read Retry-After")
	case len(list) > 1:
		_, a, _ := early(list)
		return did(cameTooEarly, "attempt %d came after %s; the server had asked for longer", a.Number, words.Rounded(a.Arrived-list[0].Answered))
	case call.Ended != "":
		return did(didNotEnd, "the call had %s, and had not ended %s after its attempt", words.Rounded(s.Case.timeout), words.Rounded(call.End-list[0].Arrived))
	case !s.retries:
		return did(noRetries, "one attempt: the client makes no retries")
	}
	took := s.sleptAfterTheAnswer()
	switch {
	case took > s.Case.timeout+s.Case.slackFor(slack):
		return did(endedLate, "the call had %s, and ended %s after the answer", words.Rounded(s.Case.timeout), words.Rounded(took))
	case took >= s.Case.timeout*3/4:
		return did(slept, "it ended %s after the answer: it waited until its %s were over, for a retry that could only come later", words.Rounded(took), words.Rounded(s.Case.timeout))
	}
	return did(gaveUpAtOnce, "it gave up %s after the server's answer", words.Rounded(took))
}

// sleptAfterTheAnswer returns how long the call went on after its first attempt was answered. The time that
// a client needs to start, connect and send is no part of it.
func (s *Seen) sleptAfterTheAnswer() time.Duration { return s.call().End - s.first()[0].Answered }

// mayHideWhetherItSleeps reports whether a busy machine can be why a client seems to sleep until its time is
// up (it ended late), or not to sleep so (its time had begun long before its request arrived).
func mayHideWhetherItSleeps(s *Seen) bool {
	if mayHideThatItIsInTime(s) {
		return true
	}
	return s.Late > usualLateness && noSleep(s).outcome == gaveUpAtOnce && s.sleptAfterTheAnswer() > s.Case.timeout/4
}

func cancelled(s *Seen) finding {
	list := s.first()
	if len(list) == 0 {
		return did(nothingCame, "nothing arrived")
	}
	if s.call().Ended != "" {
		return did(didNotEnd, "the call had %s and was ended after %s", words.Rounded(s.Case.timeout), words.Rounded(s.Took))
	}
	for _, a := range list {
		if a.Gone == 0 {
			return did(leftOpen, "attempt %d was left open at the server", a.Number)
		}
	}
	return did(cancelledIt, "the server learned %s after the attempt arrived that nobody waits for it", words.Rounded(list[0].Gone-list[0].Arrived))
}

func ownTimeout(s *Seen) finding {
	if s.call().Ended != "" {
		return did(stillWaited, "no timeout of its own: it still waited after %s", words.Rounded(s.Took))
	}
	return did(gaveUp, "it gave up after %s", words.Rounded(s.call().End-s.call().Start))
}
