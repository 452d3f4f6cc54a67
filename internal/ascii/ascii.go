// Package ascii writes JSON that every header takes.
package ascii

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// JSON is text, which is JSON, with everything escaped in it that is not printable
// ASCII. (encoding/json has escaped the controls below space already; there is nothing but ASCII
// outside of strings.)
func JSON(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf && r != 0x7f:
			b.WriteByte(byte(r))
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return b.String()
}
