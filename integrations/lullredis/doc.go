// Package lullredis has what the instances of a service share through Redis: a retry
// budget for all of them together ([Fleet], [Budget]), and idempotency keys ([Store]).
//
//	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	fleet, err := lullredis.Open(client, lullredis.FleetConfig{})
//	...
//	pays, err := fleet.Budget("payments", lullredis.Config{Floor: 5})
//	...
//	d, err := lull.NewDependency("payments", policy, lull.WithBudget(func() budget.Budget { return pays }))
//
// What follows is about the budget; [Store] has its own documentation.
//
// # Why
//
// A retry budget bounds the load that retries add. Its two parts behave differently
// when there are many instances. Ratios compose: if each of N instances makes retries
// for a tenth of its calls, all of them together do. Stocks and floors do not: what one
// instance may spend without having earned it, N instances may spend N times, and no
// instance knows N. With a floor of 10 retries per second and process, as Finagle's
// RetryBudget has by default, a thousand processes may send 10,000 per second to a
// service that is down. So a floor that is safe for the fleet is next to nothing for the
// one instance that needs it, and one that is useful for it is dangerous for the fleet.
//
// Here the ratio is counted by each instance for itself, as budget.Account does: a tenth
// of the calls that succeeded, in stock up to two retries, beyond that for ten seconds;
// but for the stock at the start, which nobody has earned. The floor, F retries per
// second, and the pool in which it gathers, C retries, are the fleet's. Instances lease
// from it what they need, in whole tokens, each of which pays for one retry.
//
// # No request waits for Redis
//
// A decision is taken with what the instance holds. If that is nothing it is a refusal,
// at once, and a goroutine (one for each Fleet, whatever the number of dependencies)
// asks for more meanwhile. It syncs once a second, with one script for each dependency,
// all in one pipeline; after a quarter of a second if an instance has run out and the
// pool has not. A Redis that is slow, stopped or gone is noticed by nobody but this
// goroutine.
//
// What an instance asks for follows what it spent: it would hold twice as much as it spent
// since the last sync, and half as much each time that it spends less. Redis grants up to
// half of the pool, so that something is left for the next. An instance without a need
// hands everything back; but if its calls have not earned a token yet, it keeps one to be
// ready, out of the upper half of the pool. So a single instance in trouble gets nearly
// all that the fleet has, and ten of ten thousand do not find it hoarded.
//
// # The bound
//
// Let p be the pool, and o the tokens that instances hold according to Redis. The script
// keeps p + o ≤ C: what comes in from the floor is cut off there. No instance holds more
// than its record says, as it can only have spent some since. So the tokens that exist,
// in the pool and in the instances' hands, are never more than C. Time adds F per second
// to them, retries take one each, and nothing else adds any. Therefore in any stretch of
// time from s to t, for any number of instances, whatever they do,
//
//	retries ≤ ratio × calls that succeeded + F × (t-s) + C
//
// where the calls are those whose tokens had not been spent or lost by s. Counted from
// the fleet's first sync it is less by C, as a pool begins empty.
//
// This is a token bucket for the whole fleet, to the token. (Leases of Doorman, or of
// Envoy's rate limit quota service, come on top of what the server has left.) It rests on
// each sync being carried out once. A sync that is not answered may have been carried
// out or not, and may be still to come: a Redis that was stopped carries out, when it
// goes on, what has come in meanwhile on connections long given up, and clients repeat
// commands of their own accord. So syncs are numbered. An instance sends the same one
// until it is answered; Redis answers a repetition with the answer of the first time,
// and does nothing for one that another has overtaken.
//
// # When Redis is away
//
// An instance that has had no answer for four times Every is on its own ([Alone]). It
// spends what it holds, and allows itself its share of a part α of the floor, half unless
// [Config].Alone says otherwise: α×F/N per second, where N is the number of instances that
// Redis had last told it of. It had to be in step for two rounds before that: then all
// that begin a share together knew of each other, and their shares add up to no more
// than α×F. Each begins with a part of a token, drawn by chance, so that the fleet's
// tokens do not all come in the same moment; on average the tokens are exactly the share,
// and no instance is a whole one ahead.
//
//   - Redis stands still, or cannot be reached by anybody. The script, when it runs again,
//     sees that nobody has synced for longer than two rounds, and adds (1-α)×F for that
//     time instead of F. What the instances allowed themselves is the rest, and the bound
//     holds as it stands for any stretch that begins before or after the trouble. (For
//     one that begins in the middle it is on average α×C more, as shares that are not used
//     lapse only when they are as old as a pool gets.)
//   - Part of the fleet is cut off, M of the N instances. The others have the floor to
//     themselves: M/N × α × F per second on top, half the floor at most. Instances that
//     were cut off more than ten minutes apart count N without each other.
//   - The fleet grows meanwhile. Instances that were never in step have the ratio only.
//   - Redis has lost its data: restarted, flushed, evicted, or failed over to a replica
//     that had none. The pool begins empty, so that nothing is gained by it. Instances
//     drop what they hold when they hear of it. What they spend before is at most C, once.
//   - Failover to a replica that lags: what was granted in that time can be granted again.
//     At most C, once.
//   - Redis' clock is stepped. Back: nothing. Forward: at most C, once.
//   - An instance dies. What it held is missing for ten minutes, in which p is at most
//     C - o. One that cannot be reached gives it up after five. (The clock of a suspended
//     machine may stand still; if it goes on after ten minutes it has what it held, once.)
//
// # What is seen
//
// [Budget.State] and [Fleet.States]: pool, lease, instances seen, the last sync and its
// error, and whether the instance is in step or on its own.
//
// # Redis
//
// Redis 5 or later, or Valkey; one script for each sync, with the server's clock, so that
// instances need not agree on the time. The two keys of a dependency have its name as
// their hash tag and lie in one slot of a cluster; those of different dependencies lie in
// different ones. They expire a day after the last sync. The records of a thousand
// instances take about 150 KB.
//
// The dependency is github.com/redis/go-redis/v9 (BSD), the client that most programs in
// Go which use Redis already have, handed in as its redis.UniversalClient: a single server,
// Sentinel, a cluster. Two of its defaults matter. It ignores the deadlines of contexts
// unless ContextTimeoutEnabled is set; [Open] refuses such a client, and one that hangs
// all the same (a hook, a dialer) holds up syncs only. And it repeats commands whose
// answer was lost, three times, which is harmless here; but MaxRetries: -1 saves a
// server in trouble the work.
//
// # Cost
//
// A call that succeeds, or a decision, costs what it costs in a budget.Account and two
// loads more: 10 ns for a success, 6 to 39 for a retry, paid or refused (AMD EPYC, two
// cores; go test -bench Decision). Nothing allocates. A sync takes Redis and client
// together 16 to 18 µs (go test -bench Script), so a thousand instances with ten dependencies
// that sync once a second are a sixth of a core.
//
// Fifty instances around one Redis, one of them with a third of all calls, four calls of
// five failing, F = 30/s, C = 60, syncs ten times a second; phases of 2.5 s
// (TestFiftyInstancesOfOneRedis):
//
//	Redis     calls   ratio × successes + F × time   retries
//	up         1420                            103        79
//	stopped    1413                            103        60
//	back       1419                            104       139
//	stopped    1412                            101        62
//	back       1336                            103       140
//	all        7000                            514       480
//
// (When Redis is back the fleet has what the floor brought meanwhile, up to the pool.) At
// its closest the sum of retries was 6 below the bound, without the pool.
//
// # What it does not do
//
// It does not pay for a blip that is longer than what an instance has earned and the
// fleet has in its pool: a fleet budget is a bound first. It does not lend the ratio's
// tokens from one instance to another. It does not share the outcome of calls: a breaker
// that learned of other instances' failures would need bounds of its own for when they
// are stale. And it is as good as the configuration is the same everywhere: an instance
// with another Floor or Pool syncs by its own.
package lullredis
