package wheel

import "github.com/lullgo/lull/internal/hugepage"

// Events lie in chunks, which buckets take from a pool and give back as they
// drain. A chunk is large enough to read as a stream and small enough that the
// one half filled at the end of each bucket does not count.
const (
	chunkLen   = 128 // events: 2 KiB
	slabChunks = 64  // in one slab
	// From manySlabs on they are made blockSlabs at a time, for which large pages
	// pay: with a thousand buckets, as many chunks are written to in turn.
	manySlabs  = 32
	blockSlabs = 64
)

type chunk [chunkLen]Event

// A pool holds chunks, by number. Numbers instead of pointers, so that the
// garbage collector has nothing to look at.
type pool struct {
	slabs []*[slabChunks]chunk
	next  []uint32 // for each chunk the one that follows it in its bucket or in free
	free  uint32   // the first free chunk + 1; 0 if none
}

func (p *pool) chunk(id uint32) *chunk { return &p.slabs[id/slabChunks][id%slabChunks] }

// reserve makes room for so many chunks in the tables, not for the chunks.
func (p *pool) reserve(chunks int) {
	p.slabs = make([]*[slabChunks]chunk, 0, chunks/slabChunks+1)
	p.next = make([]uint32, 0, (chunks/slabChunks+1)*slabChunks)
}

func (p *pool) get() uint32 {
	if p.free == 0 {
		p.grow()
	}
	id := p.free - 1
	p.free = p.next[id]
	return id
}

func (p *pool) put(id uint32) {
	p.next[id] = p.free
	p.free = id + 1
}

func (p *pool) grow() {
	first := len(p.slabs) * slabChunks
	if len(p.slabs) < manySlabs {
		p.slabs = append(p.slabs, new([slabChunks]chunk))
	} else {
		block := new([blockSlabs][slabChunks]chunk)
		hugepage.Advise(block[:])
		for i := range block {
			p.slabs = append(p.slabs, &block[i])
		}
	}
	for i := first; i < len(p.slabs)*slabChunks; i++ {
		p.next = append(p.next, uint32(i+2))
	}
	p.next[len(p.next)-1] = 0
	p.free = uint32(first + 1)
}

// A bucket is a list of chunks, all full but the last, in the order of insertion.
type bucket struct {
	tail        *chunk // last
	first, last uint32
	n           int // events
}

func (b *bucket) add(p *pool, e Event) {
	i := uint(b.n) % chunkLen
	if i == 0 {
		b.grow(p)
	}
	b.tail[i] = e
	b.n++
}

func (b *bucket) grow(p *pool) {
	id := p.get()
	if b.n == 0 {
		b.first = id
	} else {
		p.next[b.last] = id
	}
	b.last = id
	b.tail = p.chunk(id)
}

func (b *bucket) peek(p *pool) []Event { return p.chunk(b.first)[:min(b.n, chunkLen)] }

func (b *bucket) drop(p *pool) {
	id := b.first
	b.first = p.next[id]
	b.n -= min(b.n, chunkLen)
	p.put(id)
}
