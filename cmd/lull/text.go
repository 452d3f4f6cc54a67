package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// text is the value of a flag as it was typed. It takes whatever stands there,
// so that "--load -1" is answered with what a load may be.
type text string

// Decode implements kong's MapperValue.
func (t *text) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Pop()
	if token.IsEOL() {
		return fmt.Errorf("a value is missing")
	}
	*t = text(fmt.Sprint(token.Value))
	return nil
}

// option is the text of a flag whose default depends on other flags. Nothing that
// was typed ("--load=") is not the same as not typed.
type option struct {
	typed text
	given bool
}

// Decode implements kong's MapperValue.
func (o *option) Decode(ctx *kong.DecodeContext) error {
	o.given = true
	return o.typed.Decode(ctx)
}

// or is what was typed, or a default.
func (o option) or(otherwise text) text {
	if !o.given {
		return otherwise
	}
	return o.typed
}
