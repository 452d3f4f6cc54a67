package draw

import "math"

// Log is the natural logarithm, as math.Log but the same bits on every machine. It
// is accurate to about one unit in the last place.
//
// x is 2^k * z with z in [0.6875, 1.375), and z lies in one of 64 cells, each with
// an inverse c of about its middle that has ten bits. Then r = z*c - 1 is small
// (at most 1/64) and is computed with one rounding, because the halves of z times
// c are exact; and
//
//	log x = k log 2 - log c + log(1+r)
//
// where -log c is in the table and the last is its Taylor series. The two cells
// at 1 have c = 1, so that the result is as accurate near 0 as elsewhere.
func Log(x float64) float64 {
	b := math.Float64bits(x)
	k := 0.0
	if b-leastNormal >= infinity-leastNormal { // not a normal positive number
		switch {
		case x == 0:
			return math.Inf(-1)
		case x < 0:
			return math.NaN()
		case b >= infinity: // or not a number
			return x
		}
		b = math.Float64bits(x * 0x1p52)
		k = -52
	}

	from := b - logFrom
	k += float64(int64(from) >> 52)
	z := b - from&^(1<<52-1)
	c := &logs[from>>46&63]

	upper := z &^ (1<<27 - 1)
	zUpper := math.Float64frombits(upper)
	zLower := math.Float64frombits(z) - zUpper
	r := (float64(zUpper*c.inverse) - 1) + float64(zLower*c.inverse)

	r2 := float64(r * r)
	p := float64(r*(1./3)) - 1./2
	p += float64(r2 * (float64(r*(1./5)) - 1./4))
	p += float64(float64(r2*r2) * ((float64(r*(1./7)) - 1./6) + float64(r2*(float64(r*(1./9))-1./8))))

	// k*ln2Upper is exact. The greatest are added last.
	small := float64(r2*p) + float64(k*ln2Lower)
	return (float64(k*ln2Upper) + c.log) + (r + small)
}

const (
	leastNormal = 1 << 52
	infinity    = 0x7ff << 52
	logFrom     = 0x3fe6 << 48 // the bits of 0.6875

	// Their sum is log 2, and the first has 16 zeros at its end.
	ln2Upper = 0.6931471805582987
	ln2Lower = 1.6465949582897082e-12
)

// logs are the cells: the inverse of a number within, and that number's logarithm
// rounded once. They were computed with 300 bits.
var logs = [64]struct{ inverse, log float64 }{
	{1.447265625, -0.3696760002565791},
	{1.4296875, -0.3574558889218038},
	{1.4140625, -0.34646676734620857},
	{1.3984375, -0.3353555419211378},
	{1.3828125, -0.324119468654212},
	{1.369140625, -0.3141832619950823},
	{1.35546875, -0.3041473354672967},
	{1.33984375, -0.29255300268637746},
	{1.326171875, -0.28229650251918836},
	{1.3125, -0.27193371548364176},
	{1.298828125, -0.26146241561634637},
	{1.287109375, -0.2523989094629994},
	{1.2734375, -0.24171993688714516},
	{1.26171875, -0.23247487874309405},
	{1.248046875, -0.22157982933802703},
	{1.236328125, -0.2121457971046684},
	{1.224609375, -0.20262191559341292},
	{1.212890625, -0.19300645689397097},
	{1.201171875, -0.18329764276701008},
	{1.19140625, -0.17513433212784915},
	{1.1796875, -0.16524957289530717},
	{1.169921875, -0.15693697307594157},
	{1.158203125, -0.14686977395821768},
	{1.1484375, -0.13840232285911913},
	{1.138671875, -0.1298625613109846},
	{1.126953125, -0.11951764146859177},
	{1.1171875, -0.11081436634029011},
	{1.107421875, -0.10203467868824428},
	{1.099609375, -0.0949550031001826},
	{1.08984375, -0.08603433734180316},
	{1.080078125, -0.07703337648282702},
	{1.0703125, -0.06795066190850775},
	{1.0625, -0.06062462181643484},
	{1.052734375, -0.05139094586948937},
	{1.044921875, -0.04394212185649876},
	{1.037109375, -0.03643739620243105},
	{1.02734375, -0.026976587698202076},
	{1.01953125, -0.019342962843130935},
	{1.01171875, -0.011650617219975274},
	{1, 0},
	{1, 0},
	{0.9765625, 0.023716526617316044},
	{0.962890625, 0.03781545099681768},
	{0.947265625, 0.054175734102024586},
	{0.93359375, 0.06871389254805181},
	{0.919921875, 0.08346653102309004},
	{0.908203125, 0.09628721945215148},
	{0.89453125, 0.11145544092532282},
	{0.8828125, 0.1246424452072766},
	{0.87109375, 0.13800567301944372},
	{0.859375, 0.15154989812720093},
	{0.84765625, 0.16528009093910292},
	{0.8359375, 0.179201429457711},
	{0.826171875, 0.1909524459932298},
	{0.814453125, 0.20523840324070633},
	{0.8046875, 0.2173012756899814},
	{0.794921875, 0.2295114395969128},
	{0.78515625, 0.24187253642048673},
	{0.775390625, 0.2543883443523174},
	{0.765625, 0.26706278524904525},
	{0.7578125, 0.27731928541623435},
	{0.748046875, 0.2902896358588618},
	{0.740234375, 0.30078841995708144},
	{0.73046875, 0.31406882762497584},
}
