package draw_test

import (
	"fmt"

	"github.com/lullgo/lull/lab/sim/internal/draw"
)

// The numbers of a call's second attempt are at a key made of what they are for.
func ExampleFrom() {
	const seed, client, attempt = 1, 70_000, 2
	s := draw.From(draw.Mix(draw.Mix(seed, client), attempt))
	fmt.Println("server", s.Below(10))
	fmt.Printf("works for %.4f of the mean\n", draw.Exponential(s.Uint64()))
	// Output:
	// server 7
	// works for 0.5027 of the mean
}
