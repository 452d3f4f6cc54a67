// Package lullredis has two things that the instances of a service share through Redis: a retry
// budget for all of them together ([Fleet], [Budget]), and idempotency keys ([Store]). And it puts
// the commands of a go-redis client under a policy ([AddTo]).
//
//	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	fleet, err := lullredis.Open(client, lullredis.FleetConfig{})
//	...
//	pays, err := fleet.Budget("payments", lullredis.Config{Floor: 5})
//	...
//	d, err := lull.NewDependency("payments", policy, lull.WithBudget(func() budget.Budget { return pays }))
//
// [Store] and [AddTo] have their own documentation. The rest of this comment is about the budget.
//
// A retry budget bounds the load that retries add. A ratio works for a fleet: if each of N
// instances makes retries for a tenth of its calls, so do all of them together. Stocks and floors
// do not: N instances may spend N times what one instance may spend without having earned it. So
// here each instance counts the ratio for itself, as budget.Account does, without a stock at the
// start. The floor, F retries per second, and the pool in which it gathers, C retries, belong to
// the fleet. Instances lease whole tokens from the pool, each of which pays for one retry.
//
// The bound: in any interval from s to t, for any number of instances,
//
//	retries ≤ ratio × calls that succeeded + F × (t-s) + C
//
// where the calls are those whose tokens had not been spent or lost by s. Counted from the
// fleet's first sync the bound is smaller by C, because a pool begins empty.
//
// No request waits for Redis. A decision uses the tokens that the instance holds. Without tokens
// the retry is refused at once, and a goroutine (one for each Fleet) asks for more. This goroutine
// syncs once a second, with one script for each dependency, all in one pipeline. It syncs after a
// quarter of a second if the instance has no tokens left and the pool has. An instance without an answer for four
// times Every is on its own ([Alone]): it allows itself its share of a part of the floor.
//
// [Budget.State] and [Fleet.States] report the pool, the lease, the instances, the last sync and
// its error, and whether the instance is in step or on its own.
//
// It needs Redis 5 or later, or Valkey, and github.com/redis/go-redis/v9 (BSD), for a single
// server, Sentinel or a cluster. The options of the client need ContextTimeoutEnabled: [Open]
// refuses a client without it. All instances need the same Floor and Pool.
//
// Cost: a success takes 10 ns and a retry 6 to 39 ns, paid or refused; nothing allocates. A sync
// takes Redis and client together 16 to 18 µs.
//
// docs/guide.md has the rest, under "One budget for a fleet": the proof of the bound, what holds
// when Redis is away, the keys, and measurements.
package lullredis
