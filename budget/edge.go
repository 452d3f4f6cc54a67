package budget

import "sync/atomic"

// An edge finds the refusal worth an event: the first one after a grant.
type edge struct{ refused atomic.Bool }

func (e *edge) grant(r Receipt) Grant {
	if e.refused.Load() {
		e.refused.Store(false)
	}
	return Grant{OK: true, Receipt: r}
}

func (e *edge) refuse() Grant {
	return Grant{Exhausted: !e.refused.Swap(true)}
}
