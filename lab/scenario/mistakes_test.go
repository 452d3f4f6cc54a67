package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/codec/codectest"
	"github.com/lullgo/lull/internal/golden"
)

func TestMistakesOfAScenarioFile(t *testing.T) {
	_, err := Read("testdata/scenario-mistakes.yaml")
	golden.File(t, "testdata/scenario-mistakes.txt", codectest.Slashed(err))
	if n := len(codectest.Located(t, err)); n < 10 {
		t.Errorf("%d mistakes", n)
	}
}

func TestListsAreLimited(t *testing.T) {
	_, err := Parse("f", []byte("horizon: 1m\nservices: ["+strings.Repeat("{}, ", codec.MaxElements+1)+"]\n"))
	check.Equal(t, fmt.Sprint(err), "f:2:11: services is a list of 10001: want at most 10000 elements", "the mistake")
}
