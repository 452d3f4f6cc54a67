package admission

import (
	"net/http"
	"testing"
)

func TestPriorityOf(t *testing.T) {
	for v, want := range map[string]Priority{"sheddable": Sheddable, "Sheddable-Plus": SheddablePlus, "critical": Critical,
		"critical-plus": CriticalPlus, "": Critical, "u=0": Critical} {
		if got := PriorityOf(http.Header{"Lull-Criticality": {v, "sheddable"}}); got != want {
			t.Errorf("Lull-Criticality: %s is %v", v, got)
		}
	}
	if PriorityOf(nil) != Critical {
		t.Error("no header at all means something")
	}
}
