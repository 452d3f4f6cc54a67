package sim

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

// pushFront is the inverse of popFront.
func (r *ring) pushFront(v uint32) {
	r.grow()
	r.first = (r.first - 1) & (len(r.buf) - 1)
	r.buf[r.first] = v
	r.n++
}

// grow makes room for one more.
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
