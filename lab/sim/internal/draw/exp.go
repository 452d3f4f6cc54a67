package draw

import "math"

// Exp is e to the x, for x from -700 to 700, as math.Exp but the same bits on every machine. It is
// accurate to about one unit in the last place. Other x are not allowed.
//
// With k the integer next to 32 x / log 2, and r = x - k log 2 / 32, which is at
// most 0.011,
//
//	exp x = 2^(k div 32) * 2^(k mod 32 / 32) * exp r
//
// The first is the exponent, the second is in a table, the last is its Taylor
// series.
func Exp(x float64) float64 {
	steps := float64(x * stepsPerUnit)
	if x < 0 {
		steps -= 0.5
	} else {
		steps += 0.5
	}
	k := int64(steps)
	n := float64(k)

	// n*stepUpper is exact, and so is the first difference.
	r := (x - float64(n*stepUpper)) - float64(n*stepLower)
	r2 := float64(r * r)
	p := float64(r*(1./6)) + 1./2
	p += float64(r2 * (float64(r*(1./120)) + 1./24))
	p += float64(float64(r2*r2) * (1. / 720))
	p = r + float64(r2*p)

	t := powers[k&31]
	y := t + float64(t*p) // in [0.98, 2)
	return y * math.Float64frombits(uint64(k>>5+1023)<<52)
}

const (
	stepsPerUnit = 46.16624130844683 // 32 / log 2

	// Their sum is log 2 / 32, and the first has 18 zeros at its end.
	stepUpper = 0.021660849391992087
	stepLower = 5.062034433330175e-13
)

// powers are 2^(i/32), rounded once.
var powers = [32]float64{
	1, 1.0218971486541166, 1.0442737824274138, 1.0671404006768237,
	1.0905077326652577, 1.1143867425958924, 1.1387886347566916, 1.1637248587775775,
	1.189207115002721, 1.215247359980469, 1.241857812073484, 1.2690509571917332,
	1.2968395546510096, 1.3252366431597413, 1.3542555469368927, 1.383909881963832,
	1.4142135623730951, 1.4451808069770467, 1.4768261459394993, 1.5091644275934228,
	1.5422108254079407, 1.5759808451078865, 1.6104903319492543, 1.645755478153965,
	1.681792830507429, 1.718619298122478, 1.7562521603732995, 1.7947090750031072,
	1.8340080864093424, 1.8741676341103, 1.9152065613971474, 1.9571441241754002,
}
