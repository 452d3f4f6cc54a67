package engine

// maxFailedHints: after so many failed retries in a row at times that the server asked for, the
// budget pays for such retries. Before that they are free: such a retry is a call that was put
// off. The first that succeeds makes them free again. Only the default budget (budget.Account)
// has this rule.
const maxFailedHints = 2

// recordHintedRetry records the end of a retry that was made at the time that the server asked
// for.
func (m *memory) recordHintedRetry(v Verdict) {
	switch v.Kind {
	case KindSuccess:
		m.failedHints.Store(0)
	case KindTransient, KindRateLimited, KindOverloaded:
		m.failedHints.Add(1)
	}
}
