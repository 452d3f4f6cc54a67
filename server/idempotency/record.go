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
	d := decoder{rest: data[:n:n]}
	if d.byte() != recordVersion {
		return errRecord
	}
	flags, status, fields := d.byte(), d.uvarint(), d.count()
	if d.bad || flags&^flagBodyOmitted != 0 || status != 0 && (status < 100 || status > 999) {
		return errRecord
	}
	rec := Record{Status: int(status), BodyOmitted: flags&flagBodyOmitted != 0}
	if fields > 0 {
		rec.Header = make(http.Header, fields)
	}
	last := ""
	for i := range fields {
		name := string(d.bytes())
		values := make([]string, d.count())
		for j := range values {
			values[j] = string(d.bytes())
		}
		if d.bad || i > 0 && name <= last {
			return errRecord
		}
		rec.Header[name], last = values, name
	}
	if rec.Body = d.bytes(); d.bad || len(d.rest) != 0 {
		return errRecord
	}
	*r = rec
	return nil
}

// decoder takes an encoding apart from the front. bad: it is no valid one, and what was read of it means nothing.
type decoder struct {
	rest []byte
	bad  bool
}

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
func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || n > 1 && d.rest[n-1] == 0 {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count is a number of things that take a byte each at least, so that a damaged
// record cannot ask for more memory than its own length.
func (d *decoder) count() int {
	v := d.uvarint()
	if v > uint64(len(d.rest)) {
		d.bad = true
		return 0
	}
	return int(v)
}

func (d *decoder) bytes() []byte {
	n := d.count()
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}
