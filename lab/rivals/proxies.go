package rivals

import "github.com/lullgo/lull/backoff"

// proxies retry on behalf of the processes beside them.
func proxies() []Preset {
	const (
		envoy     = "envoyproxy/data-plane-api@84e84367, route_components.proto and circuit_breaker.proto; envoyproxy/envoy, backoff_strategy.cc and retry_state_impl.cc"
		envoyNote = "A process stands for one Envoy. Without retry_on Envoy retries nothing; the preset has one that covers what the scenario calls transient, timeouts of an attempt (per_try_timeout) included. " +
			"Envoy's documentation gives other waits than its code (0-24, 0-74, 0-174 ms); the code's are taken."
	)
	all := Reads{Timeouts: true}
	waits := backoff.Schedule{Base: 25 * ms, Cap: 250 * ms} // full jitter below 25, 50, 100, 200, 250 ms
	route := attemptsAndWaits(2, waits)
	route.Deadline = 15 * second // the route's timeout, retries included
	// The budget of Rust's tower and of Linkerd's proxy is Finagle's, but deposits are made by calls that succeed.
	tower := finagleDefault()
	tower.OnSuccess = true
	return []Preset{{
		Name: "envoy", Title: "Envoy with retry_on: 1 retry within 25 ms, at most 3 retries at a time, 15 s in all",
		Source: envoy,
		Note:   envoyNote + " The limit of 3 (circuit_breakers.max_retries) is on retries under way, each Envoy for itself.",
		Policy: route, Budget: Budget{Envoy: EnvoyConfig{MinConcurrency: 3}}, Reads: all,
	}, {
		Name: "envoy-retry-budget", Title: "envoy with a retry_budget: 20 % of the active calls, or 3",
		Source: envoy,
		Note:   envoyNote + " It bounds retries under way, not retries made: fast failures with short waits pass as many as they can make. Here a call that waits for its retry is active, in Envoy it is not, so that Envoy's limit is a little lower.",
		Policy: route, Budget: Budget{Envoy: envoyDefault()}, Reads: all,
	}, {
		Name: "istio", Title: "Istio without a retries section: 2 retries within 25 and 50 ms, no budget",
		Source: "istio/istio@86c9f01f, pilot/pkg/networking/core/route/retry/retry.go; api destination_rule.proto for maxRetries",
		Note: "By default it retries connect-failure, refused-stream, unavailable and cancelled: neither 503 nor timeouts. A retryOn that covers more makes it retry those as well. " +
			"Istio sets max_retries to 2^32-1, which takes away Envoy's limit of 3. Retries go to other hosts than before; the scenario chooses hosts at random.",
		Policy: attemptsAndWaits(3, waits),
	}, {
		Name: "linkerd", Title: "Linkerd's service profile: retries at once, 20 % of successes and 10 a second over 10 s",
		Source: "linkerd/linkerd2-proxy@29637b64, app/outbound/src/http/retry.rs; tower-rs/tower@8358ee71, retry/budget/tps_budget.rs",
		Note: "No limit on the retries of one call but the budget; the engine allows 999. The floor is per proxy: M proxies may send 10 M retries a second. " +
			"A request that gets no response at all is not retried, and even earns.",
		Policy: attemptsAndWaits(mostAttempts, atOnce), Budget: Budget{Finagle: tower},
	}, {
		Name: "linkerd-route", Title: "Linkerd's retry annotations: 1 retry after 25 to 50 ms, no budget",
		Source: "linkerd/website 2-edge/reference/retries.md; linkerd/linkerd2@b24cd405, policy-controller/grpc/src/outbound/http.rs",
		Note:   "With retry.linkerd.io/timeout an attempt that takes too long is cancelled and tried again. A service profile takes the place of the annotations.",
		Policy: attemptsAndWaits(2, backoff.Schedule{Jitter: backoff.Equal, Base: 50 * ms, Cap: 250 * ms}), Reads: all,
	}}
}
