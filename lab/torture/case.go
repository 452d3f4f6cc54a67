package torture

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/lullgo/lull/lab/torture/internal/words"
)

// A Case is one thing that the server does to a client, what the client ought to do then, and
// the source of that. It stands in the file of its topic, such as case_hint.go.
type Case struct {
	Name   string // such as status-503, part of the address
	Group  string // one of Groups: that of its topic
	Does   string // what the server does
	Right  string // what a client may do, and the grade that it gets for it; the rest of a sentence that begins with "the client"
	Source string // where that stands

	method string // GET if its topic names none
	key    bool   // the call has an Idempotency-Key
	body   int    // bytes of the request's body
	// timeout is how long the client is given for the call. Zero leaves it its own.
	timeout time.Duration
	plan    plan
	// limit is the time from the client's first connection on after which it is ended; defaultLimit if zero.
	limit        time.Duration
	door         door
	doors        []arrival     // what becomes of the first connections
	script       []answer      // the answers to the attempts of a call, in order; the last one repeats
	alone        bool          // it measures short times: no other case runs beside it
	usualDelay   time.Duration // how long a good answer takes that is not in the script
	onlyReported bool          // only the report of the client shows how it took the answer
	// exempt reports whether the case does not apply to the client; nil if it applies to all.
	exempt func(*Seen) (finding, bool)
	// judge finds out what the client did, and rules have a grade for each outcome. Right is made of the rules.
	judge func(*Seen) finding
	rules rules
	field string // of the response, which only some clients claim to read; empty if the case has none
	// maybeBusy reports whether a busy machine may be the cause of what was seen. The case is then tried again, up to
	// mostTries times in all. If the machine was busy in the last try, too, there is no verdict, unless judgedWhenBusy.
	maybeBusy      func(*Seen) bool
	judgedWhenBusy bool // a busy machine can cause it once, but not in each try
	// retriedLonger: if nothing arrived in time, or usualDelay is set, the times of the next try are twice as long.
	retriedLonger bool
	timesFactor   int // by which the times of this try are longer; 0 is 1
}

// withLongerTimes returns the case with the times of the caller and of the server multiplied. Delays that a busy machine adds
// then weigh less. Cases in which the waits of the client decide do not use it: the client would make another number of attempts.
func (c Case) withLongerTimes(times int) Case {
	if times == 1 {
		return c
	}
	by := time.Duration(times)
	c.timesFactor, c.timeout, c.limit = times, by*c.timeout, by*cmp.Or(c.limit, defaultLimit)
	c.script = slices.Clone(c.script)
	for i := range c.script {
		c.script[i].delay *= by
	}
	return c
}

// slackFor returns the slack of an upper bound, if that of the first try is d.
func (c Case) slackFor(d time.Duration) time.Duration {
	return d * time.Duration(max(1, c.timesFactor))
}

func (c Case) result() Result {
	return Result{Case: c.Name, Group: c.Group, Does: c.Does, Right: c.Right, Source: c.Source}
}

// mostTries is how often a case is tried, if a busy machine may have spoilt it.
const mostTries = 3

// defaultLimit is longer than the common clients need to give up: go-retryablehttp's waits
// are 15 s together.
const defaultLimit = 24 * time.Second

// The topics, in the order of the cases. Those of hintCases stand in case_hint.go, with all that belongs to them,
// and so on. A group may have several topics.
var topics = []struct {
	group string
	cases func() []Case
}{
	{"statuses", statusCases},
	{"connections that break", brokenCases},
	{"connections that break", http2Cases},
	{"connections that break", tlsCases},
	{"connections that break", resumeCases},
	{"must not be repeated", onceCases},
	{"bodies", bodyCases},
	{"hints", hintCases},
	{"waits", waitCases},
	{"deadlines", deadlineCases},
	{"volume", volumeCases},
	{"recovery", recoveryCases},
	{"hedging", hedgeCases},
	{"connections", connectionCases},
	{"keys", keyCases},
}

// Groups are the lines of a card, in order.
var Groups = groups()

func groups() []string {
	var list []string
	for _, t := range topics {
		list = append(list, t.group)
	}
	return slices.Compact(list)
}

// A plan is how many calls are made, and when. The zero plan is one call.
type plan struct {
	calls    int
	together bool          // all at once; otherwise one after the other
	every    time.Duration // one in each interval, however long they take
	rounds   int           // all at once, but in so many rounds, one after the other
	fresh    bool          // each as by a process of its own
	layers   int           // each call passes through that many services before the last one
}

func (p plan) count() int { return max(1, p.calls) }

// shared reports whether the calls must come from one process that stays up.
func (p plan) shared() bool { return p.count() > 1 && !p.fresh || p.layers > 0 }

// A door is the kind of address that a case has.
type door string

const (
	doorPlain   door = ""            // HTTP/1.1 and, with prior knowledge, HTTP/2
	doorTLS     door = "tls"         // both over TLS, with a certificate of the client's CA
	doorWrong   door = "tls-wrong"   // the certificate is for another name
	doorExpired door = "tls-expired" // it expired yesterday
	doorUnknown door = "tls-unknown" // nobody knows who signed it
	doorFrames  door = "frames"      // HTTP/2 over TLS, frame by frame
	doorClosed  door = "closed"      // nobody listens
)

// An arrival is what becomes of a connection that has just been accepted, for the time line.
type arrival string

const (
	arriveGood  arrival = "is accepted"
	arriveReset arrival = "is reset as soon as it is accepted"
	arriveClose arrival = "is closed as soon as it is accepted"
	arriveHello arrival = "is reset in the handshake" // when the first bytes of TLS have come
)

// An answer is what becomes of a request.
type answer struct {
	status int
	header []string      // "Name: value"; {imf+3} and its like are a date in three seconds
	body   int           // bytes of the response's body
	fault  *fault        // nil if nothing is wrong with it
	delay  time.Duration // before the answer
	// wait is the least time that the header asks for. Dates in the header set it by
	// themselves.
	wait time.Duration
	// gather holds the answer back until so many calls have come, and then answers all of them.
	gather int
	// only is the number of the only call that gets this answer, counted from 1; the others get
	// a 200. Zero means all.
	only int
	// share of the calls get this answer; the others get a 200. Zero means all.
	share float64
	// rest: it is given to a request with a Range alone; others get a 200.
	rest bool
	// until is how long after the beginning of the case the answer is given, and from is when
	// it begins. Outside of that the answer is 200. Zero means always.
	from, until time.Duration
}

// A fault is what is wrong with a response. It stands in the file of its topic.
type fault struct {
	name string // in the time line
	// Over HTTP/1.1 the connection ends after a part of a response, with RST if it is reset, and else with FIN.
	part  string
	reset bool
	// frame is sent over HTTP/2 in the place of an answer on a stream. After a GOAWAY the connection ends.
	frame func(stream uint32) []byte
}

// Cases returns all cases, in the order of Groups.
func Cases() []Case {
	var all []Case
	for _, t := range topics {
		for _, c := range t.cases() {
			c.Group, c.Right, c.method = t.group, c.rules.text(), cmp.Or(c.method, http.MethodGet)
			all = append(all, c)
		}
	}
	return all
}

// Select returns the cases that the patterns name: names of cases or of groups, or the beginning
// of a name followed by "*". Without patterns it returns all.
func Select(patterns []string) ([]Case, error) {
	return words.Select(Cases(), patterns, func(c Case) (name, group string) { return c.Name, c.Group }, "lull torture", "status-*")
}

var good = answer{status: 200}

// failing is a script: those statuses, and then 200.
func failing(statuses ...int) []answer {
	var script []answer
	for _, status := range statuses {
		script = append(script, answer{status: status})
	}
	return append(script, good)
}
