package lint

import (
	"slices"

	"github.com/lullgo/lull/cmd/lull/convert"
	"github.com/lullgo/lull/config"
)

// configMaps reads the policy files in the ConfigMaps of t, and reports whether there are any, and
// whether there are files of other systems.
func (g *gathering) configMaps(t part) (read, others bool) {
	for _, e := range convert.InConfigMaps(convert.File{Name: t.file, Data: t.data}) {
		if !convert.IsPolicyFile(e.File) {
			others = true
			continue
		}
		inner := part{file: t.file, data: e.Data, line: t.line, column: t.column}
		if e.Whole {
			line, column := t.place(e.At.Line, e.At.Column)
			inner.fixed = &config.Position{File: t.file, Line: line, Column: column}
		}
		g.policy(inner)
		read = true
	}
	return read, others
}

// isSpring reports whether a document is of a Spring Boot application, which may have others that say
// nothing by themselves.
func isSpring(t part) bool {
	return slices.Contains(convert.Recognise(convert.File{Name: t.file, Data: t.data}), convert.Resilience4j)
}
