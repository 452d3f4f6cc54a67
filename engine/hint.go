package engine

// maxEmptyHints is how many retries in a row, at times that the server asked for, may fail
// before further ones are paid for like others.
const maxEmptyHints = 2

// A retry at the time that the server asked for is a call that was put off. So it is free.
// When two in a row have failed the budget pays; the first that succeeds makes them free
// again. It is so with the default budget (budget.Account) alone.

func (m *memory) hintsAreGood() bool { return m.emptyHints.Load() < maxEmptyHints }

// hintEnded notes how a retry ended that was made at the time that the server asked for.
func (m *memory) hintEnded(v Verdict) {
	switch v.Kind {
	case KindSuccess:
		m.emptyHints.Store(0)
	case KindTransient, KindRateLimited, KindOverloaded:
		m.emptyHints.Add(1)
	}
}
