package hugepage

import "testing"

// Advice changes nothing that can be read, whatever the size and place.
func TestAdviceIsHarmless(t *testing.T) {
	for _, n := range []int{0, 1, 1 << 10, least/8 - 1, least / 8, 1 << 21, 3<<21 + 5} {
		s := make([]uint64, n)
		for i := range s {
			s[i] = uint64(i)
		}
		Advise(s)
		if n > 3 {
			Advise(s[3:])
		}
		for i := range s {
			if s[i] != uint64(i) {
				t.Fatalf("%d words: word %d is %d", n, i, s[i])
			}
		}
	}
}
