package lullhttp

import (
	"testing"
	"testing/synctest"
)

// A new release of Go may change how its errors come about: then this fails, and
// references has to learn it.
func TestReferencesAreFound(t *testing.T) {
	refs := references()
	if refs.closedIdle == nil || refs.statusLine == "" || refs.statusCode == "" || refs.statusLine == refs.statusCode ||
		refs.lostPing == "" || refs.goAway == "" || refs.lostPing == refs.goAway {
		t.Errorf("net/http has shown only %+v", refs)
	}
	t.Logf("%+v", refs)
	for range 100 {
		if err := provokeClosedIdle(); err != refs.closedIdle {
			t.Fatalf("%v, and then %v", refs.closedIdle, err)
		}
		if start := goAwayStart(); start != refs.goAway {
			t.Fatalf("%q, and then %q", refs.goAway, start)
		}
	}
}

// They are found in virtual time, too, and leave nothing behind.
func TestReferencesAreFoundInABubble(t *testing.T) {
	refs := references()
	synctest.Test(t, func(t *testing.T) {
		if text := lostPing(); text != refs.lostPing || goAwayStart() != refs.goAway {
			t.Errorf("%q, and %q; want %+v", text, goAwayStart(), refs)
		}
	})
}

func BenchmarkReferences(b *testing.B) {
	for b.Loop() {
		provokeClosedIdle()
	}
}
