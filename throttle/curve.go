package throttle

import "math"

// A curve is that of CUBIC congestion control, as the AWS SDKs use it for a rate in
// attempts per second. After a rate-limited answer at the rate max it falls to beta × max,
// is back at max after the plateau time, and then grows further.
type curve struct {
	beta  float64 // what is left of the rate after a rate-limited answer
	scale float64 // steepness, per second²
}

var awsCurve = curve{beta: 0.7, scale: 0.4}

// plateau returns how many seconds after a rate-limited answer the curve is back at max.
func (c curve) plateau(max float64) float64 {
	return math.Cbrt(max * (1 - c.beta) / c.scale)
}

// rate returns the rate t seconds after a rate-limited answer at max.
func (c curve) rate(t, max float64) float64 {
	d := t - c.plateau(max)
	return c.scale*d*d*d + max
}
