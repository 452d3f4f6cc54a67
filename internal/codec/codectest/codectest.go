// Package codectest has what the tests of the files of lull share.
package codectest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
)

// Located fails unless err is tree.Mistakes that all have a place. It returns them.
func Located(t *testing.T, err error) tree.Mistakes {
	t.Helper()
	var mistakes tree.Mistakes
	if !errors.As(err, &mistakes) {
		t.Fatalf("got %v (%T), want Mistakes", err, err)
	}
	for _, m := range mistakes {
		if m.File == "" || m.Line < 1 || m.Column < 1 || m.Found == "" {
			t.Errorf("%+v has no place or says nothing", m)
		}
	}
	return mistakes
}

// Slashed is the text of err with the separators of other systems as ours.
func Slashed(err error) string {
	return strings.ReplaceAll(fmt.Sprintln(err), `testdata\`, "testdata/")
}

// Fill sets v to anything that a file can hold; a third of it stays zero.
func Fill(random *rand.Rand, v reflect.Value) {
	if random.IntN(3) == 0 {
		return
	}
	texts := []string{"a", "none", "null", "1", "true", "a: b", " a ", "a\nb", "a\n", "\n", "\n a", "ä", "\u0085", "\u2028x", "\t", "\"'", "#", "\r\n", "\x00", "\x7f", "\ufeff", "- a", "?", "~", "<<", "x  y", "...", "---", "%A"}
	switch t := v.Type(); {
	case t.Kind() == reflect.Struct:
		for i := range v.NumField() {
			Fill(random, v.Field(i))
		}
	case t.Kind() == reflect.Slice:
		if n := random.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(t, n, n))
			for i := range n {
				Fill(random, v.Index(i))
			}
		}
	case t.Kind() == reflect.String:
		v.SetString(texts[random.IntN(len(texts))] + texts[random.IntN(len(texts))])
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	case t.Kind() == reflect.Float64:
		for {
			x := math.Float64frombits(random.Uint64())
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				v.SetFloat(x)
				return
			}
		}
	case t.Kind() == reflect.Uint8:
		v.SetUint(uint64(random.IntN(len(codec.EnumNames(t))))) // of an Answer too
	default: // whole numbers and durations
		v.SetInt(int64(random.Uint64()) >> random.IntN(64))
	}
}
