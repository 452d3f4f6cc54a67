package idempotency

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"slices"
)

// A Record is the part of a response that is kept.
type Record struct {
	Status int         // 100 to 999; zero if the handler set none
	Header http.Header // as it is replayed; values in their order
	Body   []byte
	// BodyOmitted: the request was carried out, but its body was not kept (it was too
	// long, or the handler took over the connection, or panicked). It cannot be
	// replayed, and must not be run again.
	BodyOmitted bool
}

// recordVersion is the first byte of every record. It changes if the rest does.
const recordVersion = 1

const flagBodyOmitted = 1

// MarshalBinary returns the record's encoding: a byte 1, a byte of flags
// (1: body omitted), and then as unsigned varints and bytes
//
//	status, number of fields, {name, number of values, {value}}, body
//
// where a name, a value and the body is its length and its bytes; and at the end the
// CRC-32C of all that, big-endian, so that no store gives out a record that was changed
// underneath it. Fields are in the order of their names, so equal records have equal
// encodings. This form will be read by all versions of this package; one that a later
// version writes differently begins with another byte. The error is of a status that no
// response has.
func (r Record) MarshalBinary() ([]byte, error) {
	if r.Status != 0 && (r.Status < 100 || r.Status > 999) {
		return nil, fmt.Errorf("idempotency: Record.Status is %d: want 100 to 999, or zero", r.Status)
	}
	var flags byte
	if r.BodyOmitted {
		flags |= flagBodyOmitted
	}
	n := 16 + sumSize + len(r.Body)
	for name, values := range r.Header {
		n += 4 + len(name)
		for _, v := range values {
			n += 2 + len(v)
		}
	}
	b := append(make([]byte, 0, n), recordVersion, flags)
	b = binary.AppendUvarint(b, uint64(r.Status))
	b = binary.AppendUvarint(b, uint64(len(r.Header)))
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		b = appendString(b, name)
		b = binary.AppendUvarint(b, uint64(len(r.Header[name])))
		for _, v := range r.Header[name] {
			b = appendString(b, v)
		}
	}
	b = appendString(b, r.Body)
	return seal(b), nil
}

const sumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func seal(b []byte) []byte { return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)) }

func appendString[S ~string | ~[]byte](b []byte, s S) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

var errRecord = errors.New("idempotency: not a record of this version, or a damaged one")

// UnmarshalBinary reads what MarshalBinary wrote, and nothing else: no varint longer
// than it need be, no name out of order, nothing left over. Body is a part of data.
// With an error, r is unchanged.
func (r *Record) UnmarshalBinary(data []byte) error {
	n := len(data) - sumSize
	if n < 0 || crc32.Checksum(data[:n], castagnoli) != binary.BigEndian.Uint32(data[n:]) {
		return errRecord
	}
	d := decoder{data[:n:n]}
	if d.byte() != recordVersion {
		return errRecord
	}
	flags := d.byte()
	rec := Record{BodyOmitted: flags&flagBodyOmitted != 0}
	status, ok := d.uvarint()
	if !ok || flags&^flagBodyOmitted != 0 || status != 0 && (status < 100 || status > 999) {
		return errRecord
	}
	rec.Status = int(status)
	fields, ok := d.count()
	if !ok {
		return errRecord
	}
	if fields > 0 {
		rec.Header = make(http.Header, fields)
	}
	last := ""
	for i := range fields {
		name, okName := d.bytes()
		n, okCount := d.count()
		if !okName || !okCount || i > 0 && string(name) <= last {
			return errRecord
		}
		last = string(name)
		values := make([]string, n)
		for j := range values {
			v, ok := d.bytes()
			if !ok {
				return errRecord
			}
			values[j] = string(v)
		}
		rec.Header[last] = values
	}
	body, ok := d.bytes()
	if !ok || len(d.rest) != 0 {
		return errRecord
	}
	rec.Body = body
	*r = rec
	return nil
}

// decoder takes an encoding apart from the front.
type decoder struct{ rest []byte }

// byte is 0 at the end.
func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		return 0
	}
	c := d.rest[0]
	d.rest = d.rest[1:]
	return c
}

// uvarint refuses one with a superfluous zero at its end.
func (d *decoder) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || n > 1 && d.rest[n-1] == 0 {
		return 0, false
	}
	d.rest = d.rest[n:]
	return v, true
}

// count is a number of things that take a byte each at least, so that a damaged
// record cannot ask for more memory than its own length.
func (d *decoder) count() (int, bool) {
	v, ok := d.uvarint()
	if !ok || v > uint64(len(d.rest)) {
		return 0, false
	}
	return int(v), true
}

func (d *decoder) bytes() ([]byte, bool) {
	n, ok := d.count()
	if !ok {
		return nil, false
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b, true
}
