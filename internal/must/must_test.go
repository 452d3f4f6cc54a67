package must

import (
	"errors"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

func TestCatch(t *testing.T) {
	broken := errors.New("broken")
	call := func(f func()) (err error) {
		defer Catch(&err)
		f()
		return nil
	}
	if err := call(func() { Have(1, nil); Succeed(nil) }); err != nil {
		t.Error(err)
	}
	if err := call(func() { Have(1, broken) }); err != broken {
		t.Error(err)
	}
	if err := call(func() { Fail("it is %w", broken) }); !errors.Is(err, broken) {
		t.Error(err)
	}
	defer func() {
		check.Equal(t, recover(), "else", "panicked with")
	}()
	call(func() { panic("else") })
}
