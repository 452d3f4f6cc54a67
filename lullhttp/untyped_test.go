package lullhttp

import (
	"testing"
	"testing/synctest"
)

// A new release of Go may change how its errors come about: then this fails, and
// references has to learn it.
func TestReferencesAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refs := references()
		if refs.closedIdle == nil || refs.statusLine == "" || refs.statusCode == "" || refs.statusLine == refs.statusCode ||
			refs.lostPing == "" || refs.goAway == "" || refs.lostPing == refs.goAway {
			t.Errorf("net/http has shown only %+v", refs)
		}
		for range 10 { // they are found in virtual time, too, and leave nothing behind
			if err := provokeClosedIdle(); err != refs.closedIdle {
				t.Fatalf("%v, and then %v", refs.closedIdle, err)
			}
			if text := lostPing(); text != refs.lostPing || goAwayStart() != refs.goAway {
				t.Fatalf("%q, and %q; want %+v", text, goAwayStart(), refs)
			}
		}
	})
}
