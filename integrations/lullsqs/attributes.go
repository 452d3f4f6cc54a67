package lullsqs

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/ascii"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/queue"
)

// ExtraAttribute is the name of the one message attribute that this package adds by itself, and
// only to messages that do not fit into SQS' limits. It is JSON, with the encoding of the body
// ("b": "base64" for one that is not text that SQS takes, "empty" for one of no bytes), with
// headers ("h") that are more than ten, or empty, or have characters that SQS does not take, and
// with the group ("g") of a dead letter in a FIFO queue.
const ExtraAttribute = "Lull-Extra"

type extra struct {
	Body    string            `json:"b,omitempty"`
	Headers map[string]string `json:"h,omitempty"`
	Group   *string           `json:"g,omitempty"`
}

func (e extra) empty() bool { return e.Body == "" && len(e.Headers) == 0 && e.Group == nil }

func (e extra) clone() extra {
	e.Headers = maps.Clone(e.Headers)
	return e
}

const (
	bodyBase64 = "base64"
	bodyEmpty  = "empty"
)

// A payload is a message in the form of SQS.
type payload struct {
	text  string
	attrs map[string]types.MessageAttributeValue // without ExtraAttribute
	extra extra
}

// encode makes a message of headers and a body. Each header is a message attribute of type String,
// if SQS allows it.
func encode(h queue.Headers, body []byte) (p payload, err error) {
	switch {
	case len(body) == 0:
		p.text, p.extra.Body = "-", bodyEmpty
	case isText(string(body)):
		p.text = string(body)
	default:
		p.text, p.extra.Body = base64.StdEncoding.EncodeToString(body), bodyBase64
	}
	p.attrs = make(map[string]types.MessageAttributeValue, len(h))
	for name, value := range h {
		switch {
		case !utf8.ValidString(name):
			return p, lull.Permanent(fmt.Errorf("lullsqs: the name of a header is no text: %q is not UTF-8", name))
		case !utf8.ValidString(value):
			return p, lull.Permanent(fmt.Errorf("lullsqs: the header %s is no text: it is not UTF-8", name))
		case isName(name) && name != ExtraAttribute && value != "" && isText(value):
			p.attrs[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
		default:
			p.pack(name, value)
		}
	}
	return p, nil
}

func (p *payload) pack(name, value string) {
	if p.extra.Headers == nil {
		p.extra.Headers = map[string]string{}
	}
	p.extra.Headers[name] = value
}

// with returns p with a header, which replaces one of the same name.
func (p *payload) with(name, value string) payload {
	n := payload{text: p.text, attrs: maps.Clone(p.attrs), extra: p.extra.clone()}
	if n.attrs == nil {
		n.attrs = map[string]types.MessageAttributeValue{}
	}
	delete(n.extra.Headers, name)
	n.attrs[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	return n
}

// shorten returns p, a dead letter with the envelope e, with headers so much shorter that it is no
// larger than its message.
func (p *payload) shorten(e *queue.Envelope) payload {
	sizes := map[string]int{}
	for name, a := range p.attrs {
		sizes[name] = size("", map[string]types.MessageAttributeValue{name: a})
	}
	for name, value := range p.extra.Headers {
		sizes[name] = len(name) + len(value) + 6
	}
	delete(sizes, queue.EnvelopeHeader)
	e, keep := e.Shortened(sizes, additions)
	n := p.with(queue.EnvelopeHeader, e.Encode())
	for name, length := range keep {
		a, plain := n.attrs[name]
		value, packed := n.extra.Headers[name]
		if plain && aws.ToString(a.DataType) == "String" {
			value = aws.ToString(a.StringValue)
		}
		length = min(length-len(name)-6, len(value))
		delete(n.attrs, name)
		delete(n.extra.Headers, name)
		if length <= 0 {
			continue
		}
		if value = strings.ToValidUTF8(value[:length], ""); packed {
			n.extra.Headers[name] = value
		} else if value != "" {
			n.attrs[name] = types.MessageAttributeValue{DataType: a.DataType, StringValue: &value}
		}
	}
	return n
}

// additions is the most bytes that a dead letter adds to its message: the envelope, and in a FIFO
// queue the group.
const additions = queue.MaxEnvelope + 256

// attributes returns all attributes of the message, ten at most. The others go into ExtraAttribute:
// text first, the last in the alphabet first, the envelope never.
func (p *payload) attributes() (map[string]types.MessageAttributeValue, error) {
	out := p.attrs
	if most := choice.Either(p.extra.empty(), mostAttrs, mostAttrs-1); len(out) > most { // one for ExtraAttribute
		out, most = maps.Clone(out), mostAttrs-1
		packed := payload{extra: p.extra.clone()}
		names := slices.Sorted(maps.Keys(out))
		slices.Reverse(names)
		for _, kind := range []string{"String", "Number"} {
			for _, name := range names {
				a, there := out[name]
				if len(out) > most && there && name != queue.EnvelopeHeader && a.StringValue != nil && strings.HasPrefix(aws.ToString(a.DataType), kind) {
					packed.pack(name, *a.StringValue)
					delete(out, name)
				}
			}
		}
		if len(out) > most {
			return nil, lull.Permanent(fmt.Errorf("lullsqs: the message has %d attributes that are no text, with which no others fit: SQS takes ten", len(out)))
		}
		p = &packed
	}
	if p.extra.empty() {
		return out, nil
	}
	text, err := json.Marshal(p.extra)
	if err != nil {
		return nil, lull.Permanent(fmt.Errorf("lullsqs: headers: %w", err))
	}
	out = maps.Clone(out)
	out[ExtraAttribute] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(ascii.JSON(string(text)))}
	return out, nil
}

// size returns the size by SQS' rules: the body, and each attribute's name, type and value.
func size(text string, attrs map[string]types.MessageAttributeValue) int {
	n := len(text)
	for name, a := range attrs {
		n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

var errTooBig = errors.New("the message is larger than SQS takes")

func (p *payload) finish() (text string, attrs map[string]types.MessageAttributeValue, err error) {
	attrs, err = p.attributes()
	if err != nil {
		return "", nil, err
	}
	if n := size(p.text, attrs); n > mostBytes {
		return "", nil, lull.Permanent(fmt.Errorf("lullsqs: %w: %d bytes with its headers, %d are allowed", errTooBig, n, mostBytes))
	}
	return p.text, attrs, nil
}

// parse reads a received message, whoever sent it. An ExtraAttribute that this package has not
// written is a header like any other.
func parse(text string, attrs map[string]types.MessageAttributeValue) payload {
	p := payload{text: text, attrs: attrs}
	a, there := attrs[ExtraAttribute]
	if !there || a.StringValue == nil {
		return p
	}
	p.attrs = maps.Clone(attrs)
	delete(p.attrs, ExtraAttribute)
	var ok bool
	if p.extra, ok = parseExtra(*a.StringValue, text); !ok {
		p.pack(ExtraAttribute, *a.StringValue)
	}
	return p
}

func parseExtra(value, body string) (e extra, ok bool) {
	if json.Unmarshal([]byte(value), &e) != nil {
		return extra{}, false
	}
	switch e.Body {
	case "", bodyEmpty:
		return e, true
	case bodyBase64:
		_, err := base64.StdEncoding.DecodeString(body)
		if err == nil {
			return e, true
		}
	}
	return extra{}, false // of a later version, or of another program
}

// headers returns the headers of the message. Attributes of type Number are text here; binary ones
// are left out.
func (p *payload) headers() queue.Headers {
	h := make(queue.Headers, len(p.attrs)+len(p.extra.Headers))
	for name, a := range p.attrs {
		if a.StringValue != nil {
			h[name] = *a.StringValue
		}
	}
	for name, value := range p.extra.Headers {
		if _, there := h[name]; !there {
			h[name] = value
		}
	}
	return h
}

func (p *payload) body() []byte {
	switch p.extra.Body {
	case bodyEmpty:
		return nil
	case bodyBase64:
		if raw, err := base64.StdEncoding.DecodeString(p.text); err == nil {
			return raw
		}
	}
	return []byte(p.text)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

func isName(s string) bool {
	lower := strings.ToLower(s)
	return len(s) <= mostName && plainName.MatchString(s) && !strings.HasPrefix(lower, "aws.") && !strings.HasPrefix(lower, "amazon.")
}

// isText reports whether SQS takes s as text: #x9, #xA, #xD, #x20 to #xD7FF, #xE000 to #xFFFD,
// #x10000 to #x10FFFF.
func isText(s string) bool {
	for i, r := range s {
		switch {
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return false
			}
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0xfffe, r == 0xffff:
			return false
		}
	}
	return true
}

// token is what SQS takes as a group or a deduplication id: printable ASCII characters without spaces.
var token = regexp.MustCompile(`^[!-~]{1,128}$`)
