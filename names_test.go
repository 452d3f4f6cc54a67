package lull_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// The page of this package has at most 60 names. Packages engine and driver have what only drivers need, event what happens.
func TestTheRootHasFewNames(t *testing.T) {
	const most = 60
	names := map[string]string{}
	for _, file := range librarySources(t) {
		if !strings.Contains(file, "/") {
			exportedNames(t, file, nil, false, names)
		}
	}
	if len(names) > most || len(names) < 20 {
		t.Errorf("%d names, want at most %d: %v", len(names), most, slices.Sorted(maps.Keys(names)))
	}
}
