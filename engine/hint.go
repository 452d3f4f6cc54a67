package engine

// maxFailedHints is how many retries in a row, at times that the server asked for, may fail
// before further ones are paid for like others.
const maxFailedHints = 2

// A retry at the time that the server asked for is a call that was put off. So it is free.
// When two in a row have failed the budget pays; the first that succeeds makes them free
// again. It is so with the default budget (budget.Account) alone.

func (m *memory) hintedRetriesAreFree() bool { return m.failedHints.Load() < maxFailedHints }

// hintEnded notes how a retry ended that was made at the time that the server asked for.
func (m *memory) recordHintedRetry(v Verdict) {
	switch v.Kind {
	case KindSuccess:
		m.failedHints.Store(0)
	case KindTransient, KindRateLimited, KindOverloaded:
		m.failedHints.Add(1)
	}
}
