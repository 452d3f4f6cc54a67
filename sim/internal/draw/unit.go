package draw

// Unit makes a word a number in (0, 1), never 0 and never 1: the upper 52 bits
// choose one of as many equal intervals, and the number is the middle of it. So
// Unit(^bits) is exactly 1 - Unit(bits), and the mean is exactly a half.
func Unit(bits uint64) float64 {
	return float64((float64(bits>>12) + 0.5) * 0x1p-52)
}
