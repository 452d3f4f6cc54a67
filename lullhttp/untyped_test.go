package lullhttp

import "testing"

// A new release of Go may change how its errors come about: then this fails, and
// references has to learn it.
func TestReferencesAreFound(t *testing.T) {
	refs := references()
	if refs.closedIdle == nil || refs.statusLine == "" || refs.statusCode == "" || refs.statusLine == refs.statusCode {
		t.Errorf("net/http has shown only %+v", refs)
	}
	t.Logf("%+v", refs)
	for range 100 {
		if err := provokeClosedIdle(); err != refs.closedIdle {
			t.Fatalf("%v, and then %v", refs.closedIdle, err)
		}
	}
}

func BenchmarkReferences(b *testing.B) {
	for b.Loop() {
		provokeClosedIdle()
	}
}
