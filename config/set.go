package config

import (
	"reflect"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/config/syntax"
	"github.com/lullgo/lull/internal/codec"
	"github.com/lullgo/lull/internal/tree"
)

// SetPolicy changes one field of p, given as "path=value": "attempts=4" or "backoff.base=50ms". The path is as in
// messages and files. The value is as in a file. A value in braces, such as "backoff={base: 50ms, cap: 1s}", sets several
// fields and replaces all that was there. "preset=external-api" replaces all of p.
//
// The result is not validated, since it may take several assignments until it is valid. The error is [Mistakes]; p is
// then unchanged.
func SetPolicy(p *lull.Policy, assignment string) error {
	if key, value, ok := strings.Cut(assignment, "="); ok && strings.TrimSpace(key) == "preset" {
		r := newReader("")
		_, t := readPreset(r, tree.String(strings.TrimSpace(value)), "preset")
		if len(r.Mistakes) == 0 {
			*p = t.policy
		}
		return r.Mistakes.Err()
	}
	return codec.Set(syntax.ParseOwn, reflect.ValueOf(p).Elem(), assignment, "backoff.base=50ms", "preset")
}
