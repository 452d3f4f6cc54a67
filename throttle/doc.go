// Package throttle lets a client hold back by itself when the backend that it calls
// is overloaded: it decides of each attempt, a first one too, whether it may be sent.
//
// # Why
//
// A backend that is asked for more than it can do must refuse the rest, and refusing
// costs it something. With enough to refuse it does nothing else: "the backend can
// become overloaded even though the vast majority of its CPU is spent just rejecting
// requests" (Site Reliability Engineering, chapter 21, Handling Overload). A retry
// budget bounds what retries add; what is too much here are first attempts. A
// breaker refuses all of them or none, and so has no setting that fits a backend
// which can do half of what it is asked for. A throttle lets through about as much
// as is accepted.
//
// Both throttles here are off unless a Config turns them on. Both work on what one
// client sees; there is nothing to agree upon between clients.
//
//	throttle.Config{Mode: throttle.Adaptive} // refuses a share at once; for services
//	throttle.Config{Mode: throttle.Cubic}    // delays to a rate; for jobs and quotas
//
// # What both assume
//
// That all attempts of one Throttle meet the same limit. A client that calls two
// tables, or two shards, with one throttle lets the trouble of one hold back the calls
// to the other: make one for each resource that refuses for itself. AWS states the same
// of its adaptive mode: it "assumes that you are pooling clients based on the scope at
// which the backend service may throttle requests" (AWS SDKs and Tools Reference
// Guide, Retry behavior).
//
// That a refusal for load can be distinguished from other failures. [Outcome] has the
// list.
//
// That a refusal by the throttle ends the call. An attempt that was refused and is
// asked for again is another request, and makes the next refusal likelier.
//
// # Adaptive
//
// The adaptive throttling of the SRE book. The client counts for two minutes (Window)
// the requests that the application makes and the accepts, those of them that the
// backend took on. It refuses the next one with the probability
//
//	p = max(0, (requests - K × accepts) / (requests + 1)),   K = 2
//
// A request that is refused here is a request all the same, so that p grows with
// what the application wants. In equilibrium K attempts are sent for each accept: with
// K = 2 the backend refuses one request for each that it accepts, and the client
// learns soonest when there is room again. In this package's tests, five
// times more calls than a backend accepts:
//
//	calls/s of each client        2,500    250    25    2.5
//	attempts for each accept       2.01   2.06  2.15   2.45
//	the same with K = 1.1          1.11   1.12  1.19   1.42
//	without a throttle                                 5.00
//
// The backend accepts all that it can in each of them. Small clients send more than K
// for each accept because a window with few requests is a matter of luck, and luck
// works one way: p is never below zero. The book warns of "clients that only very
// sporadically send requests".
//
// # The lock-out, and what is different here
//
// After a total outage of two minutes accepts are zero and p is R/(R+1), where R are
// the requests of two minutes, thousands. It is below one: by the 1 in the
// denominator an attempt passes now and then, once in two minutes on average, at any
// rate of calls. From there what is sent can only grow by K for each accept in a
// window, that is, by a factor of e in window/1.6 for K = 2 (with x = K(1-e^-x), the
// rate grows like e^(x t/window)). For a client of 500 calls/s these are 11 times
// 75 s. Passing a probe each second saves a part of that, and not what matters:
// seconds until 95 % of the calls are accepted again, after ten minutes in which
// nobody answered, 500 calls/s in all.
//
//	clients                            1        100      1,000
//	the book's formula       over 17 min      793 s      588 s
//	and a probe each second        475 s      141 s       62 s
//	default                         57 s       40 s       23 s
//	default, K = 1.5                78 s       71 s       29 s
//	default, K = 1.1               405 s      169 s       46 s
//
// So here a second, shorter window counts too, a twelfth of the first (Recent, 10 s):
// an attempt is refused with the smaller of the two probabilities, that is, only if
// there have been too few accepts for long and still are. It is the pair of windows
// that the SRE Workbook recommends for alerts (chapter 5: "make the short window 1/12
// the duration of the long window"), for the same reason. The long window makes sure
// that there is a problem: an outage of less than a minute, after accepts, refuses
// nothing. The short one makes sure that it has not gone away: the rate grows by e
// in 6 s. A short window alone would be quicker by a minute to begin, as well, and
// would refuse in each short blip.
//
// The floor of attempts, whatever happens: Nothing is refused before the window
// holds MinRequests, 10: with one error in ten, chance makes more than half of ten
// requests fail in one of 7,000 cases. Chance lets one attempt pass in about every
// Recent. And if chance does not, the first attempt after ProbeEvery, 30 s, passes,
// also where there is no chance (a nil source of randomness). So a client with r
// calls/s is back, after any outage, within about
//
//	ProbeEvery + Recent/1.6 × ln(r × Recent),   30 s + 53 s for 500/s
//
// (in the tests, 54 s in the median of 30 flights, 71 s at worst).
//
// Floors do not compose: with M processes the floor is M attempts every 10 s, and
// ProbeEvery adds up to M every 30 s. That is why it is not shorter. In a simulation
// of a server of 1,000 requests/s, first in, first out, whose queue a stall of 10 s
// has filled, at 80 % load, with up to three retries of what times out after a
// second, 10,000 clients are back after 165 s with the default and, kept down by
// their probes alone, never with a probe every 10 s. Without a throttle they never
// are; with the book's formula after 258 s.
//
// # When a request counts
//
// When it ends, or is refused here, as in the throttler that grpc-go has for route
// lookups. The book's requests are those "attempted by the application", and counting
// them as they begin would notice a hang sooner, by the time that attempts take. But
// calls in flight would then count against the backend: of a thousand calls that a
// process begins at once, all but some fifteen would be refused before the first had
// an answer. So an attempt that hangs is not counted before it is given up, and
// attempts should be given up well within Recent. Where they take longer, a client
// comes back more slowly, by the long window.
//
// Attempts are counted, not calls: a retry is a request.
//
// # Cubic
//
// The client rate limiter of the AWS SDKs' adaptive retry mode (botocore
// retries/adaptive.py, aws-sdk-go-v2 aws/retry/adaptive_ratelimit.go). Nothing is
// limited before the first rate-limited answer. From then on each attempt, retries
// included, takes a token from a bucket that fills at a rate and holds a second's
// worth, one token at least. With every answer the rate becomes
//
//	rate-limited:  max  = min(measured rate, rate so far)
//	            rate = 0.7 × max
//	any other:  rate = 0.4 × (t - k)³ + max,   k = (max × 0.3 / 0.4)^(1/3)
//
// where t is the time since the rate-limited answer in seconds: back to max after k,
// level there, and then on, steeper and steeper. It is never below MinRate, 0.5/s,
// nor above twice the measured rate, which is that of answers, in slots of half a
// second, smoothed: 0.8 of the last slot and 0.2 of what was before. The SDKs'
// published cases are this package's tests; where the tests of two SDKs differ from
// their code (which rate is max after two rate-limited answers in a row), the code holds.
//
// Four things are different, and a setting has them as they are there:
//
// One rate-limited answer lowers the rate, and those within a second of it (FallEvery)
// do not. In the SDKs each of them does. But they come in bursts, from attempts that
// were sent before the first of them was known; ten of them leave 3 % of the rate, and
// as max falls with it, the curve has forgotten where it was. TCP, from which it
// comes, falls once in a round trip (RFC 9438). A second is what the bucket holds, and
// so what the rate takes to show. Five times more calls than a backend of 500/s
// takes, here ten times, share of the capacity used and attempts for each accept:
//
//	clients            1             10            100           1,000
//	SDKs         0.30   1.18    0.38   1.18    0.70   1.21    1.00   1.93
//	default      0.76   1.05    0.91   1.14    1.00   1.21    1.00   2.11
//
// (With a thousand clients MinRate alone is the capacity.)
//
// A wait has a limit, MaxWait, beyond which an attempt is refused. A limiter whose
// waits have none queues in the client, without an end, what the backend will not
// take, and the calls grow old in it. A longer queue brings no more accepts.
//
// Who waits has a place. In aws-sdk-go-v2 all who find the bucket empty compute the
// same wait and come back together, for one token. Here Ask takes the token that will
// be there, and the answer is the time when: the engine knows before it begins to wait
// whether the deadline allows it, and waits once. Rates that change meanwhile move the
// places of those who come later, not of those who wait. If the caller gives up
// before it sends, Learn with [Unsent] gives the place to the next who asks; without
// that it is lost, one attempt's worth.
//
// And the limit ends: a Window, two minutes, after the last rate-limited answer attempts
// pass freely again. In the SDKs a client that was rate-limited once is held for ever to
// twice its measured rate, which after a quiet night is next to nothing; a burst then
// waits seconds for each doubling, and with a limit on waits would be refused.
//
// # Cost
//
// Off: 3 ns for Ask and Learn together. Adaptive: 12 ns while nothing is refused (two
// loads, and an atomic add to a counter that is striped once cores contend for it),
// 35 if the attempt was not accepted, 95 for a refusal, which sums its windows up.
// The windows are summed up once in a slot of 4 s while that finds nothing to refuse,
// and after as many unaccepted requests as might change it; below MinRequests, each
// time, 50 ns. Cubic: 13 ns before the first rate-limited answer, with two loads and an
// atomic add, and a lock each half second; 47 ns under its lock after it, 17 for a
// refusal. Nothing is allocated after the first use and the first request that is not
// accepted.
//
// A Throttle takes 24 bytes. Adaptive takes 340 more at the first accept and 300 at
// the first request that is not one, Cubic 140. Configurations are prepared once and
// shared ([Plan]).
//
// # What it does not do
//
// It has no clock and does not wait: every method takes the time, since an epoch of
// the caller's choosing, and Ask returns how long to wait. Time may go backwards a
// little from call to call, as it does when goroutines read a clock and then race.
//
// It does not know how important a call is. The book keeps its counts for each
// criticality apart: use a Throttle for each.
//
// Adaptive does not lower the load of a fleet whose clients each call less than once
// in Recent; no client can know. It reacts to a total outage only when the share of
// accepts in two minutes has fallen below 1/K, which takes a minute at a steady rate of
// calls: to fail fast before that is a breaker's business. And where failures return
// sooner than accepts, those are counted first after a start or a pause, for as long
// as an accept takes.
//
// Cubic measures a client that is idle as slow. While the limit lasts, what it lets
// pass after a pause begins low and doubles each half second.
package throttle
