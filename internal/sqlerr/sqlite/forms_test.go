// Package sqlite has types with the forms of the errors of SQLite's drivers, which package sqlerr recognises
// by the path of their package. The drivers' own are tested in lullsql/sqltest.
package sqlite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/sqlerr"
)

// number is a result code, as an ErrorCode of ncruces/go-sqlite3.
type number uint8

func (number) Error() string { return "number" }

// pointed has a method Code, as the *Error of modernc.org/sqlite and ncruces/go-sqlite3.
type pointed struct{ n int }

func (*pointed) Error() string { return "pointed" }
func (e *pointed) Code() int   { return e.n }

// field has a field Code, as the Error of mattn/go-sqlite3.
type field struct{ Code number }

func (field) Error() string { return "field" }

// Forms whose code cannot be read.
type (
	text     struct{ Code string }
	argument struct{ n int }
	two      struct{ n int }
	none     struct{}
	empty    struct{ Number *number }
)

func (text) Error() string     { return "text" }
func (argument) Error() string { return "argument" }
func (argument) Code(int) int  { return 5 }
func (two) Error() string      { return "two" }
func (two) Code() (int, error) { return 5, nil }
func (none) Error() string     { return "none" }
func (*empty) Error() string   { return "empty" }

func TestResultCodes(t *testing.T) {
	const transient, permanent, nothing = engine.KindTransient, engine.KindPermanent, engine.KindUnclassified
	for code, want := range map[int]engine.VerdictKind{
		5: transient, 6: transient, 517: transient, 261: transient, // busy and locked, extended
		15: transient, 17: transient,
		19: permanent, 2067: permanent, // constraint
		1: nothing, 8: nothing, 7: nothing, 9: nothing, 10: nothing, 778: nothing, 14: nothing, 26: nothing,
	} {
		forms := []error{&pointed{code}, fmt.Errorf("exec: %w", &pointed{code})}
		if code < 256 {
			forms = append(forms, number(code), field{number(code)}, &field{number(code)})
		}
		for _, err := range forms {
			c, known := sqlerr.Classify(err)
			undone := want == transient
			if !known || c.Kind != want || c.Conflict != undone || c.NeverSent != undone || c.Answered != (want != nothing || code == 1 || code == 8) || c.Code != fmt.Sprint("sqlite_", code&0xff) || c.MySQL || c.OtherServer {
				t.Errorf("%T of %d: %+v, %t", err, code, c, known)
			}
		}
	}
}

func TestNoFormPanics(t *testing.T) {
	for _, err := range []error{text{"5"}, argument{5}, two{5}, none{}, (*pointed)(nil), (*field)(nil), &empty{}, errors.New("x")} {
		if c, known := sqlerr.Classify(err); known {
			t.Errorf("%T: %+v", err, c)
		}
	}
}
