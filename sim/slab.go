package sim

import "github.com/lullgo/lull/internal/hugepage"

// A slab holds many values of one type, in pieces that never move, and gives
// freed places out again, the latest first. The zero slab is empty.
type slab[T any] struct {
	pieces []*[pieceSize]T
	free   []uint32
	used   uint32
}

const (
	pieceBits = 10
	pieceSize = 1 << pieceBits
	// From manyPieces on they are made blockPieces at a time, for which large
	// pages pay.
	manyPieces  = 64
	blockPieces = 64
)

// at is the value in place i.
func (s *slab[T]) at(i uint32) *T { return &s.pieces[i>>pieceBits][i&(pieceSize-1)] }

// take gives a place, whose value is as it was left.
func (s *slab[T]) take() (uint32, *T) {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i, s.at(i)
	}
	i := s.used
	if i>>pieceBits == uint32(len(s.pieces)) {
		s.grow()
	}
	s.used++
	return i, s.at(i)
}

func (s *slab[T]) grow() {
	if len(s.pieces) < manyPieces {
		s.pieces = append(s.pieces, new([pieceSize]T))
		return
	}
	block := make([]T, blockPieces*pieceSize)
	hugepage.Advise(block)
	for ; len(block) > 0; block = block[pieceSize:] {
		s.pieces = append(s.pieces, (*[pieceSize]T)(block))
	}
}

func (s *slab[T]) give(i uint32) { s.free = append(s.free, i) }

// inUse is how many places are out.
func (s *slab[T]) inUse() int { return int(s.used) - len(s.free) }
