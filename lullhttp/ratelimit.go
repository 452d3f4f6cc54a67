package lullhttp

import "time"

// parseRateLimit reads the RateLimit field of
// draft-ietf-httpapi-ratelimit-headers-10, a List of Strings with parameters:
//
//	RateLimit: "burst";r=0;t=30, "daily";r=812
//
// r is what remains of the quota that the String names, t the seconds until more
// of it comes. Only a quota with r=0 is a reason to wait, and of several the one
// that takes longest. It returns false if there is none with a t.
//
// The draft demands that a malformed field is ignored, so one bad member spoils
// all of it; so do the forms of older drafts ("limit=100, remaining=50, reset=30").
func parseRateLimit(lines []string) (wait time.Duration, ok bool) {
	for _, line := range lines {
		p := fieldParser{s: line}
		p.skipSpace()
		for more := !p.end(); more; {
			q, valid := p.readQuota()
			if !valid {
				return 0, false
			}
			if q.remaining == 0 && q.hasReset {
				ok = true
				wait = max(wait, q.reset)
			}
			if more, valid = p.nextMember(); !valid {
				return 0, false
			}
		}
	}
	return wait, ok
}

// quota is one member of the field.
type quota struct {
	remaining int64
	reset     time.Duration
	hasReset  bool
}

func (p *fieldParser) readQuota() (quota, bool) {
	if !p.readString() {
		return quota{}, false
	}
	var r, t, pk fieldValue // a parameter that is repeated counts as its last
	for p.accept(';') {
		for p.accept(' ') {
		}
		key, ok := p.readKey()
		if !ok {
			return quota{}, false
		}
		v := fieldValue{kind: kindOther}
		if p.accept('=') {
			if v, ok = p.readValue(); !ok {
				return quota{}, false
			}
		}
		switch key {
		case "r":
			r = v
		case "t":
			t = v
		case "pk":
			pk = v
		}
	}
	switch {
	case r.kind != kindInteger || r.n < 0,
		t.kind != kindNone && (t.kind != kindInteger || t.n < 0),
		pk.kind != kindNone && pk.kind != kindBytes:
		return quota{}, false
	}
	q := quota{remaining: r.n, hasReset: t.kind == kindInteger, reset: maxWait}
	if t.n <= int64(maxWait/time.Second) {
		q.reset = time.Duration(t.n) * time.Second
	}
	return q, true
}
