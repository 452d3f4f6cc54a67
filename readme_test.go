package lull_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lullhttp"
)

// What the README and the comment of the package show, as it stands there.

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
		if errors.Is(err, errDeadlock) { // besides timeouts and broken connections, which lull knows
			err = lull.Transient(err)
		}
		return n, err
	})
	_ = balance
	return err
}

type Receipt int

type shop struct{}

func (shop) Charge(_ context.Context, order int) (Receipt, error) { return Receipt(10 * order), nil }

func packageComment(ctx context.Context, client shop, order int) (Receipt, error) {
	payments, err := lull.NewDependency("payments", lull.Policy{})
	if err != nil {
		return 0, err
	}
	receipt, err := lull.Do(ctx, payments, func(ctx context.Context) (Receipt, error) {
		return client.Charge(ctx, order)
	})
	return receipt, err
}

func TestReadme(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := 0
		l := must.Have(memnet.ListenOn("api.example.com:443"))
		s := memnet.NewUnstartedServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
		s.Listener.Close()
		s.Listener = l
		memnet.StartTLS(s)
		before := http.DefaultTransport
		defer func() { http.DefaultTransport = before }()
		http.DefaultTransport = s.Client().Transport
		if err := readmeHTTP(); err != nil || served != 1 {
			t.Errorf("%v, served %d", err, served)
		}
		queries := 0
		err := readmeDo(t.Context(), func(context.Context) (int, error) {
			if queries++; queries == 1 {
				return 0, errDeadlock
			}
			return 7, nil
		})
		if err != nil || queries != 2 {
			t.Errorf("%v after %d queries", err, queries)
		}
		if receipt, err := packageComment(t.Context(), shop{}, 7); err != nil || receipt != 70 {
			t.Errorf("%v, %v", receipt, err)
		}
	})
}
