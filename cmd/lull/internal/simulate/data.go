package simulate

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// plainData returns a scenario or a policy as JSON: every field that is not zero, named
// in snake_case, in the order of declaration. A duration is in seconds and its name ends
// in _s; a negative one, which means "none", is -1. Enumerations are written by name.
func plainData(v any) json.RawMessage {
	var b bytes.Buffer
	writeData(&b, reflect.ValueOf(v))
	return b.Bytes()
}

func writeData(b *bytes.Buffer, v reflect.Value) {
	switch x := v.Interface().(type) {
	case json.Marshaler:
		b.Write(jsonText(x))
		return
	case time.Duration:
		if x < 0 {
			b.WriteString("-1")
			return
		}
		b.Write(jsonText(figure(x.Seconds())))
		return
	case encoding.TextMarshaler:
		if text, err := x.MarshalText(); err == nil {
			b.Write(jsonText(string(text)))
			return
		}
	case fmt.Stringer:
		if v.Kind() != reflect.Struct {
			b.Write(jsonText(x.String()))
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		writeStruct(b, v)
	case reflect.Slice, reflect.Array:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			writeData(b, v.Index(i))
		}
		b.WriteByte(']')
	case reflect.Float64:
		b.Write(jsonText(figure(v.Float())))
	default:
		b.Write(jsonText(v.Interface()))
	}
}

// writeStruct writes the fields of a struct that are listed, or all that are not zero. An entry of a list is the name of a
// field, or the path to it. "=key" writes it under another name, "?" at the end leaves it out if it is zero, and
// "!Field" makes it null if that field is zero.
func writeStruct(b *bytes.Buffer, v reflect.Value) {
	list := strings.Fields(fieldsOf[v.Type()])
	if len(list) == 0 {
		for f := range v.Type().Fields() {
			if f.IsExported() {
				list = append(list, f.Name+"?")
			}
		}
	}
	separator := "{"
	for _, entry := range list {
		path, optional := strings.CutSuffix(entry, "?")
		path, other, nullable := strings.Cut(path, "!")
		path, key, named := strings.Cut(path, "=")
		field := v
		for name := range strings.SplitSeq(path, ".") {
			field = field.FieldByName(name)
		}
		if optional && field.IsZero() {
			continue
		}
		if !named {
			key = snakeCase(path[strings.LastIndexByte(path, '.')+1:])
			if field.Type() == reflect.TypeFor[time.Duration]() {
				key += "_s"
			}
		}
		b.WriteString(separator)
		separator = ","
		b.Write(jsonText(key))
		b.WriteByte(':')
		if nullable && v.FieldByName(other).IsZero() {
			b.WriteString("null")
		} else {
			writeData(b, field)
		}
	}
	b.WriteString(strings.TrimPrefix(separator, ",") + "}")
}

// jsonText returns a value that encoding/json always accepts.
func jsonText(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// snakeCase returns the name of a field in files: DropExpired is drop_expired.
func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
