package codec

import (
	"strings"
	"unicode"
)

// Path is a path in Go, such as "Services[0].AttemptTimeout", as it is in a file:
// "services.0.attempt_timeout".
func Path(inGo string) string {
	var b strings.Builder
	start := true // of a name, or within a word in upper case
	for _, c := range inGo {
		switch {
		case c == ']':
			continue
		case c == '[':
			c = '.'
		case unicode.IsUpper(c) && !start:
			b.WriteByte('_')
		}
		start = c == '.' || unicode.IsUpper(c)
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
