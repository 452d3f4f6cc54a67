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

var durationType = reflect.TypeFor[time.Duration]()

func writeData(b *bytes.Buffer, v reflect.Value) {
	switch x := v.Interface().(type) {
	case time.Duration:
		if x < 0 {
			b.WriteString("-1")
			return
		}
		writeJSON(b, figure(x.Seconds()))
		return
	case encoding.TextMarshaler:
		if text, err := x.MarshalText(); err == nil {
			writeJSON(b, string(text))
			return
		}
	case fmt.Stringer:
		if v.Kind() != reflect.Struct {
			writeJSON(b, x.String())
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		b.WriteByte('{')
		first := true
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || v.Field(i).IsZero() {
				continue
			}
			if !first {
				b.WriteByte(',')
			}
			first = false
			name := snakeCase(f.Name)
			if f.Type == durationType {
				name += "_s"
			}
			writeJSON(b, name)
			b.WriteByte(':')
			writeData(b, v.Field(i))
		}
		b.WriteByte('}')
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
		writeJSON(b, figure(v.Float()))
	default:
		writeJSON(b, v.Interface())
	}
}

// writeJSON writes a value that encoding/json always accepts.
func writeJSON(b *bytes.Buffer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	b.Write(text)
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
