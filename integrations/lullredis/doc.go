// Package lullredis has two things that the instances of a service share through Redis: a retry
// budget for all of them together ([Fleet], [FleetBudget]), and idempotency keys ([Store]). And it puts
// the commands of a go-redis client under a policy ([AddTo]).
//
//	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	fleet, err := lullredis.Open(client, lullredis.FleetConfig{})
//	...
//	pays, err := fleet.Budget("payments", lullredis.BudgetConfig{Floor: 5})
//	...
//	d, err := lull.NewDependency("payments", policy, lull.WithBudget(func() budget.Budget { return pays }))
//
// Each instance counts the ratio for itself, as budget.Account does, without a stock at the start. The floor, F
// retries per second, and the pool in which it gathers, C retries, belong to the fleet. Instances lease whole tokens
// from it. In any interval from s to t, for any number of instances,
//
//	retries ≤ ratio × calls that succeeded + F × (t-s) + C
//
// No request waits for Redis. A success takes 10 ns and a retry 6 to 39 ns; nothing allocates. docs/mechanisms.md has the
// rest, under "One budget for a fleet": what holds when Redis is away, and what a sync costs.
//
// It needs Redis 5 or later, or Valkey, and github.com/redis/go-redis/v9 (BSD), for a single server, Sentinel or a
// cluster.
package lullredis
