package lullsqs

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// legal returns the error that SQS would return for a message.
func legal(text string, attrs map[string]types.MessageAttributeValue) error {
	switch {
	case text == "" || !isText(text):
		return fmt.Errorf("the body %q", text)
	case len(attrs) > 10:
		return fmt.Errorf("%d attributes", len(attrs))
	}
	for name, a := range attrs {
		if !isName(name) || aws.ToString(a.DataType) == "" || aws.ToString(a.StringValue) == "" && len(a.BinaryValue) == 0 || !isText(aws.ToString(a.StringValue)) {
			return fmt.Errorf("attribute %q: %+v", name, a)
		}
	}
	return nil
}

func TestMessagesComeAsTheyWereSent(t *testing.T) {
	many := queue.Headers{queue.EnvelopeHeader: "{}", "traceparent": "00-1-2-3"}
	for i := range 30 {
		many[fmt.Sprintf("h%02d", i)] = fmt.Sprint(i)
	}
	ten, eleven := queue.Headers{}, queue.Headers{}
	for i := range 11 {
		eleven[fmt.Sprint("h", i)] = "x"
		if i < 10 {
			ten[fmt.Sprint("h", i)] = "x"
		}
	}
	bodies := []string{"", "-", "text", "tab\tline\r\n", "\x00", "\xff\xfe", "\ufffe", "\uffff", "\ufffd", "☃😀", "aGVsbG8=", strings.Repeat("x", 100_000)}
	for _, c := range []struct {
		h     queue.Headers
		attrs int // beside ExtraAttribute, of a plain body
		extra bool
	}{
		{nil, 0, false},
		{queue.Headers{"kind": "order"}, 1, false},
		{ten, 10, false},
		{eleven, 9, true},
		{many, 9, true},
		{queue.Headers{"empty": ""}, 0, true},
		{queue.Headers{queue.EnvelopeHeader: ""}, 0, true},
		{queue.Headers{"odd": "\x00\x1f\ufffe", "kind": "order"}, 1, true},
		{queue.Headers{"Amazon.x": "reserved", "AWS.x": "reserved", ".x": "y", "x.": "y", "x..y": "z", "sp ace": "x", "ü": "x", "": "x", strings.Repeat("n", 257): "x"}, 0, true},
		{queue.Headers{ExtraAttribute: `{"b":"base64","h":{"x":"y"}}`}, 0, true},
	} {
		for _, body := range bodies {
			p := must.Have(encode(c.h, []byte(body)))
			text, attrs, err := p.finish()
			must.Succeed(err)
			check.Equal(t, legal(text, attrs), nil, "%d headers, body %.20q", len(c.h), body)
			back := parse(text, attrs)
			if got := back.headers(); !maps.Equal(got, c.h) {
				t.Errorf("headers %v, want %v", got, c.h)
			}
			check.Equal(t, string(back.body()), body, "body")
			if body == "text" {
				_, extra := attrs[ExtraAttribute]
				if extra != c.extra || len(attrs) != c.attrs+map[bool]int{true: 1}[extra] || text != body {
					t.Errorf("%v: %d attributes, extra %v", c.h, len(attrs), extra)
				}
			}
			if _, there := attrs[queue.EnvelopeHeader]; len(c.h) == 32 && !there {
				t.Error("the envelope was packed")
			}
			dead := back.with(queue.EnvelopeHeader, "new")
			text, attrs, err = dead.finish()
			must.Succeed(err)
			check.Equal(t, legal(text, attrs), nil, "dead letter of %d headers, body %.20q", len(c.h), body)
			letter := parse(text, attrs)
			if _, there := letter.extra.Headers[queue.EnvelopeHeader]; there {
				t.Error("the former envelope is there still")
			}
			want := queue.Headers{}
			maps.Copy(want, c.h)
			want[queue.EnvelopeHeader] = "new"
			if got := letter.headers(); !maps.Equal(got, want) || string(letter.body()) != body {
				t.Errorf("dead letter: headers %v, want %v", got, want)
			}
		}
	}
}

// Binary attributes stay as they are. No envelope fits beside ten of them.
func TestTenBinaryAttributes(t *testing.T) {
	attrs := map[string]types.MessageAttributeValue{}
	for i := range 10 {
		attrs[fmt.Sprint("b", i)] = types.MessageAttributeValue{DataType: aws.String("Binary"), BinaryValue: []byte{1}}
	}
	p := parse("body", attrs)
	check.Equal(t, len(p.headers()), 0, "headers")
	p = p.with(queue.EnvelopeHeader, "{}")
	if _, _, err := p.finish(); err == nil {
		t.Error("eleven attributes were sent")
	}
	delete(attrs, "b9")
	attrs["n"] = types.MessageAttributeValue{DataType: aws.String("Number.float"), StringValue: aws.String("1")}
	p = parse("body", attrs)
	p = p.with(queue.EnvelopeHeader, "{}")
	if _, _, err := p.finish(); err == nil { // 9, the envelope, and what is packed
		t.Error("eleven attributes were sent")
	}
	delete(attrs, "b8")
	p = parse("body", attrs)
	p = p.with(queue.EnvelopeHeader, "{}")
	_, out, err := p.finish()
	if err != nil || legal("body", out) != nil || len(out) != 10 {
		t.Errorf("%d attributes, %v", len(out), err)
	}
}

func TestExtraAttributesOfOthers(t *testing.T) {
	for _, value := range []string{"", "x", "null", "[]", `{"b":"zip"}`, `{"b":"base64"}`, `{"b":1}`, `{"h":{"x":1}}`, `{"h":{"x":"y"},"b":"base64"}`} {
		attrs := map[string]types.MessageAttributeValue{
			ExtraAttribute: {DataType: aws.String("String"), StringValue: aws.String(value)},
			"kind":         {DataType: aws.String("String"), StringValue: aws.String("order")},
		}
		p := parse("not base64!", attrs)
		if string(p.body()) != "not base64!" || p.headers()["kind"] != "order" {
			t.Errorf("%s: body %q, headers %v", value, p.body(), p.headers())
		}
		if _, there := p.headers()[ExtraAttribute]; there == (value == "null") {
			t.Errorf("%s: headers %v", value, p.headers())
		}
	}
	p := parse("body", map[string]types.MessageAttributeValue{ExtraAttribute: {DataType: aws.String("Binary"), BinaryValue: []byte("x")}})
	if len(p.headers()) != 0 || string(p.body()) != "body" {
		t.Errorf("%v", p.headers())
	}
}

// Every message is read without a panic, and SQS takes its dead letter, with the same body and
// headers.
func FuzzParse(f *testing.F) {
	f.Add("body", "kind", "order", "String", `{"b":"base64","h":{"a":"b"}}`)
	f.Add("aGVsbG8=", "x", "1", "Number", `{"b":"base64"}`)
	f.Add("-", "x", "1", "Number", `{"b":"empty","g":""}`)
	f.Add("\x00", "", "", "", "")
	f.Fuzz(func(t *testing.T, body, name, value, kind, more string) {
		if !isText(body) || body == "" || !isName(name) || value == "" || !isText(value) || !isText(more) || more == "" || len(body)+len(value)+6*len(more) > 10_000 {
			return // SQS does not have such messages
		}
		attrs := map[string]types.MessageAttributeValue{
			name:           {DataType: aws.String("String" + kind), StringValue: aws.String(value)},
			ExtraAttribute: {DataType: aws.String("String"), StringValue: aws.String(more)},
		}
		p := parse(body, attrs)
		h := p.headers()
		letter := p.with(queue.EnvelopeHeader, "{}")
		text, out, err := letter.finish()
		must.Succeed(err)
		must.Succeed(legal(text, out))
		back := parse(text, out)
		h[queue.EnvelopeHeader] = "{}"
		if got := back.headers(); !maps.Equal(got, h) || string(back.body()) != string(p.body()) {
			t.Fatalf("headers %v, want %v; body %q, want %q", got, h, back.body(), p.body())
		}
	})
}

// Every message arrives as it was sent, or is refused.
func FuzzEncode(f *testing.F) {
	f.Add([]byte("body"), "kind", "order", "other", "")
	f.Add([]byte{}, ExtraAttribute, "{}", "", "\x00")
	f.Add([]byte{0xff}, "Amazon.x", "\ufffe", "x..", "☃")
	f.Fuzz(func(t *testing.T, body []byte, n1, v1, n2, v2 string) {
		h := queue.Headers{n1: v1, n2: v2}
		p, err := encode(h, body)
		if err != nil {
			for name, value := range h {
				if !utf8.ValidString(name) || !utf8.ValidString(value) {
					return
				}
			}
			t.Fatal(err)
		}
		text, attrs, err := p.finish()
		if err != nil {
			return // too large
		}
		must.Succeed(legal(text, attrs))
		back := parse(text, attrs)
		if got := back.headers(); !maps.Equal(got, h) || string(back.body()) != string(body) {
			t.Fatalf("headers %q, want %q; body %q, want %q", got, h, back.body(), body)
		}
	})
}
