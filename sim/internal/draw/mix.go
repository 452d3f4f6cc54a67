package draw

// golden is 2^64 divided by the golden ratio, odd: steps of that size spread any
// run of counters evenly.
const golden = 0x9e3779b97f4a7c15

// Mix folds two words into one. Each bit of either changes about half of the bits
// of the result; for a given a, different b never collide, nor for a given b
// different a. Mix(a, b) is not Mix(b, a). To fold more words, nest:
// Mix(Mix(seed, client), attempt).
func Mix(a, b uint64) uint64 {
	return finish(finish(a+golden) + b*golden)
}

func finish(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
