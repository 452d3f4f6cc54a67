package lullhttp

import "strings"

// fieldParser reads as much of Structured Field Values (RFC 9651) as it takes
// to walk a List of Strings with parameters and to know that all of it is
// well-formed. It keeps nothing but integers, and does not allocate.
type fieldParser struct {
	s string
	i int
}

type fieldKind uint8

const (
	kindNone fieldKind = iota
	kindInteger
	kindBytes
	kindOther
)

// fieldValue is a bare item.
type fieldValue struct {
	kind fieldKind
	n    int64 // of an integer
}

func (p *fieldParser) end() bool { return p.i == len(p.s) }

// peek is the next byte, 0 at the end. No field may contain a 0.
func (p *fieldParser) peek() byte {
	if p.end() {
		return 0
	}
	return p.s[p.i]
}

func (p *fieldParser) accept(c byte) bool {
	if p.end() || p.s[p.i] != c {
		return false
	}
	p.i++
	return true
}

// acceptWhile takes bytes as long as f holds, and returns them.
func (p *fieldParser) acceptWhile(f func(byte) bool) string {
	start := p.i
	for !p.end() && f(p.s[p.i]) {
		p.i++
	}
	return p.s[start:p.i]
}

func (p *fieldParser) skipSpace() {
	for p.accept(' ') || p.accept('\t') {
	}
}

// nextMember goes on to the next member of a list. A comma must be followed by one.
func (p *fieldParser) nextMember() (more, ok bool) {
	p.skipSpace()
	if p.end() {
		return false, true
	}
	if !p.accept(',') {
		return false, false
	}
	p.skipSpace()
	return true, !p.end()
}

func (p *fieldParser) readKey() (string, bool) {
	if c := p.peek(); !isLower(c) && c != '*' {
		return "", false
	}
	return p.acceptWhile(func(c byte) bool {
		return isLower(c) || isDigit(c) || c == '_' || c == '-' || c == '.' || c == '*'
	}), true
}

// readValue reads a bare item.
func (p *fieldParser) readValue() (fieldValue, bool) {
	switch c := p.peek(); {
	case c == '-' || isDigit(c):
		return p.readNumber()
	case c == '"':
		return fieldValue{kind: kindOther}, p.readString()
	case c == '*' || isAlpha(c):
		p.acceptWhile(isTokenByte)
		return fieldValue{kind: kindOther}, true
	case c == ':':
		return fieldValue{kind: kindBytes}, p.readBytes()
	case c == '?':
		p.i++
		return fieldValue{kind: kindOther}, p.accept('0') || p.accept('1')
	case c == '@':
		p.i++
		v, ok := p.readNumber()
		return fieldValue{kind: kindOther}, ok && v.kind == kindInteger
	case c == '%':
		p.i++
		return fieldValue{kind: kindOther}, p.readDisplayString()
	}
	return fieldValue{}, false
}

// readNumber reads an integer of up to 15 digits, or a decimal of up to 12 and 3.
func (p *fieldParser) readNumber() (fieldValue, bool) {
	negative := p.accept('-')
	whole := p.acceptWhile(isDigit)
	if whole == "" {
		return fieldValue{}, false
	}
	if p.accept('.') {
		fraction := p.acceptWhile(isDigit)
		return fieldValue{kind: kindOther}, len(whole) <= 12 && fraction != "" && len(fraction) <= 3
	}
	v := fieldValue{kind: kindInteger}
	if len(whole) > 15 {
		return v, false
	}
	for i := range len(whole) {
		v.n = v.n*10 + int64(whole[i]-'0')
	}
	if negative {
		v.n = -v.n
	}
	return v, true
}

// readString reads a String: printable ASCII in quotes, where \ quotes " and \ only.
func (p *fieldParser) readString() bool {
	return p.readQuoted('\\', func() bool { return p.accept('"') || p.accept('\\') })
}

// readDisplayString reads a Display String: a percent sign was before the quote. Its
// escapes must be in lower case; that they form UTF-8 is not checked.
func (p *fieldParser) readDisplayString() bool {
	return p.readQuoted('%', func() bool {
		if len(p.s)-p.i < 2 || !isLowerHex(p.s[p.i]) || !isLowerHex(p.s[p.i+1]) {
			return false
		}
		p.i += 2
		return true
	})
}

// readQuoted reads printable ASCII in quotes, and escaped what the escape character
// is followed by.
func (p *fieldParser) readQuoted(escape byte, escaped func() bool) bool {
	if !p.accept('"') {
		return false
	}
	for !p.end() {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			return true
		case c == escape:
			if !escaped() {
				return false
			}
		case c < ' ' || c > '~':
			return false
		}
	}
	return false
}

// readBytes reads a Byte Sequence: base64 between colons. RFC 9651 lets a parser
// take one whose padding is missing.
func (p *fieldParser) readBytes() bool {
	p.i++
	body := p.acceptWhile(func(c byte) bool { return isAlpha(c) || isDigit(c) || c == '+' || c == '/' })
	padding := p.acceptWhile(func(c byte) bool { return c == '=' })
	return p.accept(':') && len(body)%4 != 1 && (padding == "" || (len(body)+len(padding))%4 == 0 && len(padding) <= 2)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isAlpha(c byte) bool { return isLower(c | 0x20) }

func isLowerHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' }

func isTokenByte(c byte) bool {
	return isAlpha(c) || isDigit(c) || c != 0 && strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}
