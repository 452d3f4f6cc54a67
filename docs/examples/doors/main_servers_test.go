//go:build servers

package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/seed"
)

// In a total outage behind four doors their retries together are no more than a tenth of the
// successes, and two.
func TestRetriesOfAllDoors(t *testing.T) {
	var out strings.Builder
	const n = 50
	got, err := run(t.Context(), &out, n, seed.Source(t))
	if errors.Is(err, errAbsent) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	if got.calls != 8*n || got.successes != 4*n {
		t.Errorf("%d of %d calls succeeded, want %d", got.successes, got.calls, 4*n)
	}
	if most := got.successes/10 + 2; got.retries > most || got.retries == 0 {
		t.Errorf("%d retries, want 1 to %d", got.retries, most)
	}
}
