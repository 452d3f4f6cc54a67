package sim

import "github.com/lullgo/lull/internal/hugepage"

// A ring is a queue that can be taken from at both ends. The zero ring is empty.
type ring struct {
	buf   []uint32 // its length is a power of two
	first int
	n     int
}

func (r *ring) push(v uint32) {
	r.grow()
	r.buf[(r.first+r.n)&(len(r.buf)-1)] = v
	r.n++
}

func (r *ring) pushFront(v uint32) {
	r.grow()
	r.first = (r.first - 1) & (len(r.buf) - 1)
	r.buf[r.first] = v
	r.n++
}

func (r *ring) grow() {
	if r.n < len(r.buf) {
		return
	}
	buf := make([]uint32, max(16, 2*len(r.buf)))
	for i := range r.n {
		buf[i] = r.buf[(r.first+i)&(len(r.buf)-1)]
	}
	r.buf, r.first = buf, 0
}

func (r *ring) front() uint32 { return r.buf[r.first] }

func (r *ring) popFront() uint32 {
	v := r.buf[r.first]
	r.first = (r.first + 1) & (len(r.buf) - 1)
	r.n--
	return v
}

func (r *ring) popBack() uint32 {
	r.n--
	return r.buf[(r.first+r.n)&(len(r.buf)-1)]
}

// A slab holds many values of one type, which never move, and gives freed places
// out again, the latest first. The zero slab is empty.
type slab[T any] struct {
	pieces []*[pieceSize]T // for the first places, as many as a block has
	blocks []*[blockSize]T // for the others; the first is nil
	free   stack
	used   uint32
}

const (
	pieceBits = 10
	pieceSize = 1 << pieceBits
	// A block is so large that large pages pay, and there are so few that their table
	// stays in the nearest cache. From manyBlocks on they are made so many at a time:
	// large pages then fill all of it but its ends.
	blockBits  = 16
	blockSize  = 1 << blockBits
	manyBlocks = 8
)

func (s *slab[T]) at(i uint32) *T {
	if i < blockSize {
		return &s.pieces[i>>pieceBits][i%pieceSize]
	}
	return &s.blocks[i>>blockBits][i%blockSize]
}

// take gives a place, whose value is as it was left.
func (s *slab[T]) take() (uint32, *T) {
	if s.free.n > 0 {
		i := s.free.pop()
		return i, s.at(i)
	}
	i := s.used
	s.used++
	switch {
	case i < blockSize:
		if i%pieceSize == 0 {
			s.pieces = append(s.pieces, new([pieceSize]T))
		}
	case i>>blockBits >= uint32(len(s.blocks)):
		s.grow()
	}
	return i, s.at(i)
}

func (s *slab[T]) grow() {
	if len(s.blocks) == 0 {
		s.blocks = append(s.blocks, nil)
	}
	n := 1
	if len(s.blocks) >= manyBlocks {
		n = manyBlocks
	}
	blocks := make([][blockSize]T, n)
	hugepage.Advise(blocks)
	for i := range blocks {
		s.blocks = append(s.blocks, &blocks[i])
	}
}

func (s *slab[T]) release(i uint32) { s.free.push(i) }

// A stack is never copied as it grows. The zero stack is empty.
type stack struct {
	layers []*[layerSize]uint32
	n      int
}

const layerSize = 1 << 12

func (p *stack) push(i uint32) {
	if p.n == len(p.layers)*layerSize {
		p.layers = append(p.layers, new([layerSize]uint32))
	}
	p.layers[p.n/layerSize][p.n%layerSize] = i
	p.n++
}

func (p *stack) pop() uint32 {
	p.n--
	return p.layers[p.n/layerSize][p.n%layerSize]
}
