package admission

import "time"

// times is how long requests take, from admission to departure.
type times struct {
	mean   time.Duration // of the last fifty or so
	median time.Duration // about: it moves by a sixteenth of itself
}

const (
	meanOf     = 32
	medianStep = 16
	doubtStep  = 64
	longest    = time.Hour // a longer time counts as this
)

func (t *times) learn(took time.Duration) {
	took = min(max(took, 1), longest)
	if t.mean == 0 {
		t.mean, t.median = took, took
		return
	}
	t.mean = max(t.mean+(took-t.mean)/meanOf, 1)
	step := max(t.median/medianStep, 1)
	if took > t.median {
		t.median = min(t.median+step, took)
	} else {
		t.median = max(t.median-step, took)
	}
}
