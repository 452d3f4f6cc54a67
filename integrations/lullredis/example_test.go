package lullredis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/budget"
	lullredis "github.com/lullgo/lull/integrations/lullredis"
	"github.com/lullgo/lull/server/idempotency"
)

// A dependency whose retries the whole fleet pays for. There is no Redis
// here, which nobody waits for: what calls have earned still pays.
func ExampleOpen() {
	redis.SetLogger(silent{})
	client := redis.NewClient(&redis.Options{
		Dialer:                nobody,
		ContextTimeoutEnabled: true, // or Open complains
	})
	defer client.Close()
	fleet, err := lullredis.Open(client, lullredis.FleetConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fleet.Close(context.Background())
	pays, err := fleet.Budget("payments", lullredis.BudgetConfig{Floor: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	payments, err := lull.NewDependency("payments",
		lull.Policy{Backoff: backoff.Schedule{Base: time.Millisecond}},
		lull.WithBudget(func() budget.Budget { return pays }))
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	for range 10 { // earn a retry
		lull.Run(ctx, payments, func(context.Context) error { return nil })
	}
	for range 2 {
		attempts := 0
		err := lull.Run(ctx, payments, func(context.Context) error {
			if attempts++; attempts == 1 {
				return lull.Transient(errors.New("reset by peer"))
			}
			return nil
		})
		fmt.Println(attempts, "attempts, refused:", errors.Is(err, lull.ErrBudgetExhausted))
	}
	fmt.Println("the fleet:", pays.Snapshot().Mode)
	// Output:
	// 2 attempts, refused: false
	// 1 attempts, refused: true
	// the fleet: starting
}

// silent keeps go-redis from writing of refused connections.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// nobody is a network in which no Redis answers.
func nobody(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("connection refused")
}

// A client that would hold on to a stopped server is refused when the program starts,
// not found out in an outage.
func ExampleOpen_contextTimeout() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	_, err := lullredis.Open(client, lullredis.FleetConfig{})
	fmt.Println(err)
	// Output:
	// lullredis: the client ignores the deadlines of contexts, so that a server which stops answering would hold it for seconds: set ContextTimeoutEnabled in its redis.Options (or in redis.UniversalOptions), or hand in a client of its own that has it set
}

func ExampleFleet_Snapshots() {
	redis.SetLogger(silent{})
	client := redis.NewClient(&redis.Options{Dialer: nobody, ContextTimeoutEnabled: true})
	defer client.Close()
	fleet, err := lullredis.Open(client, lullredis.FleetConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fleet.Close(context.Background())
	for _, name := range []string{"payments", "orders"} {
		if _, err := fleet.Budget(name, lullredis.BudgetConfig{}); err != nil {
			fmt.Println(err)
		}
	}
	for _, s := range fleet.Snapshots() {
		fmt.Println(s.Name, s.Mode, s.Lease, s.Instances)
	}
	// Output:
	// orders starting 0 0
	// payments starting 0 0
}

func ExampleConfig_Validate() {
	fmt.Println(lullredis.BudgetConfig{Ratio: -1, Floor: -5, AloneShare: 2}.Validate())
	fmt.Println(lullredis.FleetConfig{Prefix: "{a}", SyncEvery: time.Hour}.Validate())
	// Output:
	// Ratio is -1: want zero (0.1), or a ratio from 1e-05 to 4
	// Floor is -5: want zero (1), or retries per second from 1e-06 to 1000000
	// AloneShare is 2: want zero (0.5), a part up to 1, or negative for none
	// Prefix is {a}: want text without braces, which Redis Cluster reads
	// SyncEvery is 1h0m0s: want zero (1s), or a duration from 10ms to 30s
}

// Idempotency keys in Redis. While there is no Redis, nothing is carried out twice, since
// nothing is carried out.
func ExampleNewStore() {
	client := redis.NewClient(&redis.Options{Dialer: nobody, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1})
	defer client.Close()
	redis.SetLogger(silent{})
	store, err := lullredis.NewStore(client, lullredis.StoreConfig{Replicas: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := idempotency.New(store, idempotency.Config{}, idempotency.WithScope(idempotency.SharedScope))
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := keys.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) }))

	// There is no Redis: the request is not carried out.
	r := httptest.NewRequest("POST", "/payments", strings.NewReader("amount=5"))
	r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43e8-bc93-6894a57f9324"`)
	w := httptest.NewRecorder()
	pay.ServeHTTP(w, r)
	fmt.Println(w.Code)
	fmt.Println(store.RedisKey(idempotency.StoreKey("", "8e03978e-40d5-43e8-bc93-6894a57f9324")))
	// Output:
	// 503
	// lull:idempotency:{47DEQpj8HBSa-_TImW-5JA:8e03978e-40d5-43e8-bc93-6894a57f9324}
}

// Commands of a client under a policy. One layer repeats and dials again: lull.
func ExampleAddTo() {
	d, err := lull.NewDependency("cache", lull.Policy{})
	if err != nil {
		panic(err)
	}
	err = lullredis.AddTo(redis.NewClient(&redis.Options{ContextTimeoutEnabled: true}), d)
	fmt.Println(err)
	client := redis.NewClient(&redis.Options{MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	fmt.Println(lullredis.AddTo(client, d))
	// Output:
	// lullredis: AddTo: the client repeats commands up to 3 times by itself, also those that may have been carried out: set MaxRetries to -1 in its redis.Options
	// <nil>
}
