package lullpostgres

import (
	"fmt"
	"testing"

	"github.com/lullgo/lull/internal/must"
)

func TestLocksDiffer(t *testing.T) {
	a := must.Have(newStore(poolDB{}, Config{}))
	b := must.Have(newStore(poolDB{}, Config{Table: "other"}))
	seen := map[int64]string{}
	for i := range 10000 {
		for name, s := range map[string]*Store{"a": a, "b": b} {
			l := s.lock(fmt.Sprint("key ", i))
			if was, ok := seen[l]; ok {
				t.Fatalf("%s%d has the lock of %s", name, i, was)
			}
			seen[l] = fmt.Sprint(name, i)
		}
	}
}
