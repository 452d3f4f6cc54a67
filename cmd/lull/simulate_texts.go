package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// texts are the values of a flag that may be given several times, each as it was
// typed.
type texts []text

// Decode implements kong's MapperValue.
func (t *texts) Decode(ctx *kong.DecodeContext) error {
	var one text
	if err := one.Decode(ctx); err != nil {
		return err
	}
	*t = append(*t, one)
	return nil
}

// split is every part between commas, in order.
func (t texts) split() []string {
	var parts []string
	for _, one := range t {
		for part := range strings.SplitSeq(string(one), ",") {
			parts = append(parts, strings.TrimSpace(part))
		}
	}
	return parts
}
