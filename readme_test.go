package lull_test

import (
	"context"
	"errors"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lullhttp"
)

// What the README shows must compile as it stands there; it calls a host that
// does not exist, so it is not run.

func readmeHTTP() error {
	client, err := lullhttp.NewClient(lull.Policy{}) // the zero policy is the recommended one
	if err != nil {
		return err
	}
	resp, err := client.Get("https://api.example.com/orders/7")
	if err != nil {
		return err // a *lull.Error inside records how many attempts were made, and why no more
	}
	defer resp.Body.Close()
	return nil
}

var errDeadlock = errors.New("deadlock detected")

func readmeDo(ctx context.Context, queryBalance func(context.Context) (int, error)) error {
	ledger, err := lull.NewDependency("ledger", lull.Policy{}) // one for each thing you call; share it
	if err != nil {
		return err
	}
	balance, err := lull.Do(ctx, ledger, func(ctx context.Context) (int, error) {
		n, err := queryBalance(ctx)
		if errors.Is(err, errDeadlock) { // beside timeouts and broken connections, which lull knows
			err = lull.Transient(err)
		}
		return n, err
	})
	_ = balance
	return err
}

var _, _ = readmeHTTP, readmeDo
