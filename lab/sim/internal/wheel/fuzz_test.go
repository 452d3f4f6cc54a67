package wheel_test

import (
	"encoding/binary"
	"math"
	"testing"
)

// Each three bytes are a step: what to do, and by how much. Steps repeat, so that
// few bytes reach every size at which the queue changes its ways.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 7, 200, 3, 1, 255, 255, 3, 9, 9})
	f.Add([]byte{0xf8, 0, 1, 0xf9, 3, 3, 0xfb, 1, 0, 0xfa, 60, 1, 0xf8, 1, 0, 0xfb, 255, 255})
	f.Add([]byte{0xfd, 9, 9, 0xf8, 30, 30, 0xfc, 2, 2, 0xfb, 1, 1, 0xfc, 2, 2, 0xff, 0, 1})
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 300 {
			t.Skip("more than needed")
		}
		p := newPair(t)
		x := uint64(1)
		for ; len(steps) >= 3; steps = steps[3:] {
			do, by := steps[0], int64(binary.LittleEndian.Uint16(steps[1:]))
			for range 1 + int(do>>3)*int(do>>3)/4 {
				x = x*6364136223846793005 + 1442695040888963407
				switch do & 7 {
				case 0:
					p.push(p.now() + by) // a common instant
				case 1:
					p.push(later(p.now(), int64(x>>33)%(by+1)))
				case 2:
					p.push(later(p.now(), by<<(x>>58)>>1&math.MaxInt64)) // on any scale
				case 3:
					p.pop()
				case 4:
					p.pop()
					p.push(later(p.now(), int64(x>>33)%(by+1)))
				case 5:
					p.push(later(p.now(), by*1e9))
				case 6:
					p.look(int(by % 100))
				case 7:
					p.push([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, math.MaxInt64 - 1, math.MaxInt64, -by, by}[x>>61])
				}
			}
		}
		p.drain()
	})
}

// later is t+by, or the end of time.
func later(t, by int64) int64 {
	if t > 0 && by > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + by
}
