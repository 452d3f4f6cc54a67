package seed

// Runs returns how often a test repeats what it draws at random: n times, and twenty times as often in the lab's
// suite (go test -tags lab).
func Runs(n int) int { return n * factor }
