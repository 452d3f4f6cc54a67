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
