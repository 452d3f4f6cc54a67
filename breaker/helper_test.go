package breaker

import "testing"

// must is New for a configuration that is right.
func must(t testing.TB, c Config, listeners ...func(Change)) *Breaker {
	t.Helper()
	b, err := New(c, listeners...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
