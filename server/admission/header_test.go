package admission

import (
	"net/http"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

func TestPriorityOf(t *testing.T) {
	for v, want := range map[string]Priority{"sheddable": Sheddable, "Sheddable-Plus": SheddablePlus, "critical": Critical,
		"critical-plus": CriticalPlus, "": Critical, "u=0": Critical} {
		check.Equal(t, PriorityOf(http.Header{"Lull-Criticality": {v, "sheddable"}}), want, "Lull-Criticality: %s", v)
	}
	check.Equal(t, PriorityOf(nil), Critical, "the priority without a header")
}
