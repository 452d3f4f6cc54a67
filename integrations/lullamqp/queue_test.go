package lullamqp

import "testing"

// Whether Concurrency grows at once or in steps, a channel has no more consumers than RabbitMQ can
// put in order.
func TestConsumersOfOneChannel(t *testing.T) {
	t.Parallel()
	const concurrency = 100_000
	for step := 1; step <= concurrency; step += 1 + step/3 {
		n, limit := 0, 0
		for wanted := step; limit < concurrency; wanted = min(max(wanted, limit)+step, concurrency) {
			for limit < wanted {
				limit += prefetchStep(n, limit, wanted)
				n++
			}
		}
		if n > maxConsumers {
			t.Errorf("%d consumers by steps of %d, want no more than %d", n, step, maxConsumers)
		}
	}
}
