package draw

// Exponential makes a word an exponentially distributed number with mean 1, by
// inversion: -Log(Unit(bits)). The greater the word, the smaller the number; it
// lies between 1.1e-16 and 36.8.
func Exponential(bits uint64) float64 {
	return -Log(Unit(bits))
}
