package draw

import "math/big"

// The references: logarithm and exponential with 200 bits, by their plain series.

const precision = 200

func bigFloat(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

// bigLog is 2 atanh((x-1)/(x+1)) of the mantissa in [0.5, 1), and the exponent's
// multiple of log 2.
func bigLog(x *big.Float) *big.Float {
	mantissa := bigFloat(0)
	exponent := x.MantExp(mantissa)
	sum := bigAtanhLog(mantissa)
	return sum.Add(sum, bigFloat(0).Mul(bigFloat(float64(exponent)), bigLn2))
}

var bigLn2 = bigAtanhLog(bigFloat(2))

func bigAtanhLog(x *big.Float) *big.Float {
	s := bigFloat(0).Quo(bigFloat(0).Sub(x, bigFloat(1)), bigFloat(0).Add(x, bigFloat(1)))
	square := bigFloat(0).Mul(s, s)
	sum := bigFloat(0)
	for k := 1; k < 130; k += 2 {
		sum.Add(sum, bigFloat(0).Quo(s, bigFloat(float64(k))))
		s.Mul(s, square)
	}
	return sum.Mul(sum, bigFloat(2))
}

// bigExp halves x ten times, sums the series, and squares as often.
func bigExp(x *big.Float) *big.Float {
	x = bigFloat(0).Set(x)
	x.SetMantExp(x, -10)
	sum, term := bigFloat(1), bigFloat(1)
	for k := 1; k < 60; k++ {
		term.Quo(term.Mul(term, x), bigFloat(float64(k)))
		sum.Add(sum, term)
	}
	for range 10 {
		sum.Mul(sum, sum)
	}
	return sum
}

// ulps is the distance of got from want in units of got's last place.
func ulps(got float64, want *big.Float) float64 {
	exact := bigFloat(0).Sub(bigFloat(got), want)
	exact.Quo(exact, bigFloat(unitInLastPlace(got)))
	d, _ := exact.Abs(exact).Float64()
	return d
}
