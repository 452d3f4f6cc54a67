package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/sim"
)

// The world that is simulated, and lived through on real sockets.
const (
	simClients = 1000 // with a sidecar each
	simRate    = 500  // calls a second of all, at random times, by clients chosen at random
	simBefore  = 10 * time.Second
	simOutage  = 30 * time.Second // the server answers with 503
	simAfter   = 20 * time.Second
	simWork    = 10 * time.Millisecond
	simSeeds   = 20
)

// runSim compares an outage on real sockets with the simulator's.
func runSim(ctx context.Context, out io.Writer) (err error) {
	defer must.Catch(&err)
	sums := must.Have(sim.Compare(ctx, sim.Scenario{
		Horizon: simBefore + simOutage + simAfter,
		Services: []sim.Service{{
			Name: "api", Time: sim.Distribution{Mean: simWork},
			Faults: []sim.Fault{{Kind: sim.Errors, At: simBefore, For: simOutage}},
		}},
		Fleets: []sim.Fleet{{Calls: "api", Processes: simClients, Arrivals: sim.Arrivals{Rate: simRate}}},
	}, []sim.Contender{{Name: "lull"}}, sim.CompareOptions{Seed: 1, Seeds: simSeeds}))
	live := must.Have(simLive(ctx))
	fmt.Fprintf(out, "%d clients, %d calls a second, an outage of %v (503), %d seeds. Apart: in standard deviations of one run.\n\n", simClients, simRate, simOutage, simSeeds)
	t := newTable(out, "", "simulator", "real sockets", "apart (4 is allowed)")
	for i, name := range []string{"requests a call", "share of calls that succeed"} {
		var sum, squares float64
		for _, r := range sums[0].Results {
			x := []float64{float64(r.Totals.Attempts), float64(r.Totals.Succeeded)}[i] / float64(r.Totals.Calls)
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / simSeeds
		deviation := math.Sqrt((squares-sum*mean)/(simSeeds-1)) * math.Sqrt(1+1./simSeeds)
		t.row(name, fmt.Sprintf("%.4f ± %.4f", mean, deviation), fmt.Sprintf("%.4f", live[i]), fmt.Sprintf("%.1f", math.Abs(live[i]-mean)/deviation))
	}
	return nil
}

// simLive returns the requests a call, and the share of the calls that succeeded.
func simLive(ctx context.Context) (_ []float64, err error) {
	defer must.Catch(&err)
	o := openOrigin()
	defer o.server.Close()
	var urls []string
	for len(urls) < simClients {
		doors := make([]door, 250)
		for i := range doors {
			doors[i].to = o.url
		}
		r := must.Have(peerNamed("lull").start("", doors...))
		defer r.close()
		for i := range doors {
			urls = append(urls, r.url(i))
		}
	}
	client := caller()
	began := time.Now()
	o.next(func(w http.ResponseWriter, r *http.Request, _ int) {
		if at := time.Since(began); at >= simBefore && at < simBefore+simOutage {
			unavailable(w, r, 1)
			return
		}
		time.Sleep(simWork)
		good(w, r, 1)
	})
	var made, succeeded atomic.Int64
	var group sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 2))
	for at := time.Duration(0); at < simBefore+simOutage+simAfter && ctx.Err() == nil; at += time.Duration(random.ExpFloat64() / simRate * float64(time.Second)) {
		time.Sleep(time.Until(began.Add(at)))
		url := fmt.Sprintf("%s/%d", urls[random.IntN(simClients)], made.Add(1))
		group.Go(func() {
			if call(client, http.MethodGet, url) == http.StatusOK {
				succeeded.Add(1)
			}
		})
	}
	group.Wait()
	requests, _ := o.count("")
	return []float64{float64(requests) / float64(made.Load()), float64(succeeded.Load()) / float64(made.Load())}, context.Cause(ctx)
}
