//go:build lab

package estimate

import "testing"

func TestCoverageOfManyWorlds(t *testing.T) {
	n, inside := covered(t, false, 5000, 5200)
	enough(t, n, inside, 0.93, 0.95)
	n, inside = covered(t, true, 5000, 5040)
	delete(n, "capacity")
	enough(t, n, inside, 0.9, 0.95)
}
