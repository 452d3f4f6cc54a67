package lint

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/cmd/lull/convert"
	proxyfile "github.com/lullgo/lull/cmd/lull/internal/proxy/file"
	"github.com/lullgo/lull/config"
)

// mostFixes is how many findings of a file are fixed, at most: each fix is checked by reading the file once more.
const mostFixes = 200

// FixFile makes the changes of the fixes in a file, for findings of at least the severity least that are not ignored. Comments, layout and
// facts stay: only fields of policies are changed and added. data is the file afterwards, and fixed are the findings that are gone.
//
// After each fix the file is read again. The fix is taken back if its finding is still there, if there is a new one, or if anything
// else has changed. What cannot be made so is left out: in a file of another system, in a stream of several documents, or in a field
// whose value comes from an anchor or a preset that a single field cannot override.
func FixFile(f File, o Options, least Severity) (data []byte, fixed []Finding, err error) {
	data = f.Data
	if docs := documents(f.Name, data); len(docs) != 1 || len(convert.Recognise(convert.File{Name: f.Name, Data: data})) != 1 {
		return data, nil, nil
	}
	tried := map[string]bool{}
	for range mostFixes {
		before, err := Check([]File{{Name: f.Name, Data: data}}, o)
		if err != nil {
			return f.Data, nil, err
		}
		i := slices.IndexFunc(before.Findings, func(g Finding) bool {
			return g.Ignored == nil && g.Severity >= least && len(g.Fix.Changes) > 0 && !tried[g.Rule+" "+g.Path]
		})
		if i < 0 || len(before.Unreadable) > 0 {
			break
		}
		finding := before.Findings[i]
		tried[finding.Rule+" "+finding.Path] = true
		changed, ok := edited(f.Name, data, finding.Fix.Changes)
		if !ok {
			continue
		}
		after, err := Check([]File{{Name: f.Name, Data: changed}}, o)
		if err != nil || len(after.Unreadable) > 0 || !better(before, after, finding) || !onlyThere(f.Name, data, changed, finding.Fix.Changes) {
			continue
		}
		data, fixed = changed, append(fixed, finding)
	}
	return data, fixed, nil
}

func better(before, after Report, gone Finding) bool {
	count := map[string]int{}
	for _, f := range before.Findings {
		count[f.Rule+" "+f.Path]++
	}
	count[gone.Rule+" "+gone.Path]--
	for _, f := range after.Findings {
		if count[f.Rule+" "+f.Path]--; count[f.Rule+" "+f.Path] < 0 {
			return false
		}
	}
	return true
}

// onlyThere reports whether two texts of a file differ in the policies of the changes alone.
func onlyThere(name string, before, after []byte, changes []Change) bool {
	a, errA := proxyfile.ParsePolicies(name, before)
	b, errB := proxyfile.ParsePolicies(name, after)
	if errA != nil || errB != nil || !reflect.DeepEqual(facts(a), facts(b)) {
		return false
	}
	meant := func(path string) bool {
		return slices.ContainsFunc(changes, func(c Change) bool {
			return strings.HasPrefix(c.Path, path+".") || strings.HasPrefix(c.Path, "defaults.")
		})
	}
	for i, d := range a.Dependencies {
		if d.Policy != b.Dependencies[i].Policy && !meant("dependencies."+d.Name) {
			return false
		}
	}
	return true
}

func facts(f *config.PolicyFile) config.PolicyFile {
	all := config.PolicyFile{Version: f.Version, Dependencies: slices.Clone(f.Dependencies), Services: f.Services}
	for i := range all.Dependencies {
		all.Dependencies[i].Policy = lull.Policy{}
	}
	return all
}

// edited is the text of a file with the changes made. ok is false if one of them cannot be made.
func edited(name string, data []byte, changes []Change) ([]byte, bool) {
	for _, c := range changes {
		f, err := proxyfile.ParsePolicies(name, data)
		if err != nil {
			return nil, false
		}
		ok := false
		if f.Origin(c.Path) == config.Written {
			if data, ok = replaced(data, f.Position(c.Path), c.Value); !ok {
				return nil, false
			}
			continue
		}
		// The nearest part of the path that the file has gets the rest.
		parent, rest := c.Path, ""
		for {
			i := strings.LastIndexByte(parent, '.')
			if i < 0 {
				return nil, false
			}
			if parent, rest = parent[:i], strings.Trim(c.Path[i+1:], "."); standsAt(data, f.Position(parent), parent) {
				break
			}
		}
		if data, ok = added(data, f.Position(parent), rest, c.Value); !ok {
			return nil, false
		}
	}
	return data, true
}

// standsAt reports whether at is the place of the key of the last part of path.
func standsAt(data []byte, at config.Position, path string) bool {
	key := path[strings.LastIndexByte(path, '.')+1:]
	return at.Line >= 1 && at.Column >= 1 && bytes.HasPrefix(data[offset(data, at):], []byte(key+":"))
}

// replaced is data with another value at a place. ok is false if no plain value stands there.
func replaced(data []byte, at config.Position, value string) (text []byte, ok bool) {
	from := offset(data, at)
	rest, _, _ := strings.Cut(string(data[from:]), "\n")
	if rest == "" || strings.ContainsAny(rest[:1], "&*!|>{[\"'#") {
		return nil, false
	}
	size := len(rest)
	if i := strings.IndexAny(rest, ",}]\r"); i >= 0 {
		size = i
	}
	if i := strings.Index(rest, " #"); i >= 0 {
		size = min(size, i)
	}
	old := strings.TrimRight(rest[:size], " ")
	return slices.Concat(data[:from], []byte(value), data[from+len(old):]), true
}

func offset(data []byte, at config.Position) int {
	i := 0
	for line := 1; line < at.Line; line++ {
		i += bytes.IndexByte(data[i:], '\n') + 1
	}
	for column := 1; column < at.Column && i < len(data); column++ {
		i += len(string([]rune(string(data[i:]))[:1]))
	}
	return i
}

// added is data with a field in the mapping behind the key at a place. rest is the path of the field from there.
func added(data []byte, at config.Position, rest, value string) ([]byte, bool) {
	from := offset(data, at)
	colon := bytes.IndexByte(data[from:], ':')
	if colon < 0 {
		return nil, false
	}
	parts := strings.Split(rest, ".")
	field := parts[len(parts)-1] + ": " + value
	for i := len(parts) - 2; i >= 0; i-- {
		field = parts[i] + ": {" + field + "}"
	}
	after := from + colon + 1
	end := bytes.IndexByte(data[after:], '\n')
	if end < 0 {
		return nil, false
	}
	line := strings.TrimSpace(string(data[after : after+end]))
	switch {
	case strings.HasPrefix(line, "{"):
		open := after + bytes.IndexByte(data[after:], '{') + 1
		if inside := bytes.TrimLeft(data[open:], " "); len(inside) > 0 && inside[0] != '}' {
			field += ", "
		}
		return slices.Concat(data[:open], []byte(field), data[open:]), true
	case line == "", strings.HasPrefix(line, "#"):
		next, ok := nextLine(data, after+end+1)
		indent := len(next) - len(strings.TrimLeft(next, " "))
		if !ok || indent < at.Column || strings.HasPrefix(strings.TrimSpace(next), "-") {
			return nil, false
		}
		return slices.Concat(data[:after+end+1], []byte(next[:indent]+field+"\n"), data[after+end+1:]), true
	}
	return nil, false
}

func nextLine(data []byte, i int) (string, bool) {
	for line := range strings.Lines(string(data[i:])) {
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
			return line, true
		}
	}
	return "", false
}
