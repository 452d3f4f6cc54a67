package wheel

// lateHeap is a 4-ary heap by time, then by insertion.
type lateHeap struct {
	events []Event
	seqs   []uint64
	seq    uint64
}

func (h *lateHeap) push(e Event) {
	h.seq++
	h.events = append(h.events, e)
	h.seqs = append(h.seqs, h.seq)
	i := len(h.events) - 1
	for i > 0 { // it has the latest seq, so that equal times do not move
		parent := (i - 1) / 4
		if h.events[parent].At <= e.At {
			break
		}
		h.events[i], h.seqs[i] = h.events[parent], h.seqs[parent]
		i = parent
	}
	h.events[i], h.seqs[i] = e, h.seq
}

func (h *lateHeap) pop() Event {
	first := h.events[0]
	n := len(h.events) - 1
	e, seq := h.events[n], h.seqs[n]
	h.events, h.seqs = h.events[:n], h.seqs[:n]
	if n == 0 {
		return first
	}
	events, seqs := h.events, h.seqs[:n]
	i := 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if events[c].At < events[least].At || events[c].At == events[least].At && seqs[c] < seqs[least] {
				least = c
			}
		}
		if e.At < events[least].At || e.At == events[least].At && seq < seqs[least] {
			break
		}
		events[i], seqs[i] = events[least], seqs[least]
		i = least
	}
	events[i], seqs[i] = e, seq
	return first
}
