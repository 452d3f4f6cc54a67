package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/golden"
	"github.com/lullgo/lull/internal/must"
)

// The picture in the README is the one that the engine of this tree draws.
func TestThePictureIsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: a simulation that is the same every time")
	}
	got := must.Have(draw(t.Context()))
	golden.File(t, "../../docs/outage.svg", got)
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
