package sim

import "time"

// A Distribution is how long something takes. The zero Distribution is no time
// at all.
type Distribution struct {
	Kind      DistributionKind
	Mean      time.Duration
	Deviation time.Duration // Normal
	Sigma     float64       // LogNormal
	Min, Max  time.Duration // Uniform
	Slow      float64       // Bimodal: share of slow ones
	SlowMean  time.Duration // Bimodal
	Bars      []Bar         // Histogram
}

// A Bar of a histogram: Weight cases lie between the bar before (or zero) and
// UpTo.
type Bar struct {
	UpTo   time.Duration
	Weight float64
}
