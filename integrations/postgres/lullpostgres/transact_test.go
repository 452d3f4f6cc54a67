package lullpostgres

import (
	"fmt"
	"testing"
)

func TestLocksDiffer(t *testing.T) {
	a, err := newStore(poolDB{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := newStore(poolDB{}, Config{Table: "other"})
	if err != nil {
		t.Fatal(err)
	}
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
