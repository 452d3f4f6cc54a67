package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	slash "path"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile is the size that a file may have, and a byte more: the packages in config then refuse a
// longer one.
const maxFile = 16<<20 + 1

// A File is a file that a command reads.
type File struct {
	// Name is its path; for standard input, what it is called in messages.
	Name string
	Data []byte
	// Found: nobody has named it; it was found in a directory, or by a pattern.
	Found bool
}

// ReadFiles reads the files that the arguments name, each once: files, directories and patterns, and
// "-", which is standard input, and is called stdin. The error names all that cannot be read.
func (e Env) ReadFiles(arguments []string, stdin string) (files []File, err error) {
	var failed []error
	known := map[string]bool{}
	for _, argument := range arguments {
		// A file has one name however it was typed.
		name := filepath.ToSlash(filepath.Clean(argument))
		names, found := []string{name}, true
		switch info, err := os.Stat(name); {
		case argument != "-" && err == nil && info.IsDir():
			if names, err = filesBelow(name, "**"); err == nil && len(names) == 0 {
				err = fmt.Errorf("%s has no file of YAML or JSON", name)
			}
			failed = append(failed, err)
		case argument != "-" && err != nil && strings.ContainsAny(name, "*?["):
			names, err = filesMatching(name)
			failed = append(failed, err)
		default:
			found = false
		}
		for _, each := range names {
			if known[each] {
				continue
			}
			known[each] = true
			data, err := e.ReadFile(each, maxFile)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			if each == "-" {
				each = stdin
			}
			files = append(files, File{each, data, found})
		}
	}
	return files, errors.Join(failed...)
}

// isData reports whether a file has an ending of YAML or JSON.
func isData(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(slash.Ext(name)))
}

// filesMatching returns the files that a pattern is for, in which ** stands for any folders.
func filesMatching(pattern string) ([]string, error) {
	if _, err := slash.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("%s is no pattern: write one such as policies/**/*.yaml", pattern)
	}
	root, rest := ".", pattern
	for {
		first, after, more := strings.Cut(rest, "/")
		if !more || strings.ContainsAny(first, "*?[") {
			break
		}
		switch {
		case first == "":
			root = "/"
		case root == ".":
			root = first
		default:
			root = slash.Join(root, first)
		}
		rest = after
	}
	names, err := filesBelow(root, rest)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s matches no file", pattern)
	}
	return names, err
}

// filesBelow returns the files below a folder that a pattern is for, in order. Folders that begin with a
// dot, and those of other people's code, are left out unless the pattern names them. Links to folders
// are followed, unless they lead back into a folder that is read. The error names all that cannot be read.
func filesBelow(root, pattern string) (names []string, err error) {
	parts := strings.Split(pattern, "/")
	var failed []error
	var read []string // folders, by their real names
	var walk func(folder string)
	walk = func(folder string) {
		real, err := filepath.EvalSymlinks(folder)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			failed = append(failed, CannotRead(err))
			return
		}
		if slices.ContainsFunc(read, func(other string) bool {
			within, err := filepath.Rel(other, real)
			return err == nil && filepath.IsLocal(within)
		}) {
			return
		}
		read = append(read, real)
		filepath.WalkDir(folder+"/", func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				failed = append(failed, CannotRead(err))
				return nil
			}
			name = filepath.ToSlash(filepath.Clean(name))
			within := strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
			if root == "." {
				within = name
			}
			leftOut := func() bool {
				base := slash.Base(name)
				return name != root && (base[0] == '.' || base == "node_modules" || base == "vendor") && !slices.Contains(parts, base)
			}
			wanted := matchPath(parts, strings.Split(within, "/")) && (pattern != "**" || isData(name))
			switch info, err := os.Stat(name); {
			case d.IsDir() && leftOut():
				return fs.SkipDir
			case d.IsDir():
			case err != nil && wanted:
				failed = append(failed, CannotRead(err))
			case err != nil:
			case info.IsDir() && !leftOut():
				walk(name)
			case info.Mode().IsRegular() && wanted:
				names = append(names, name)
			case wanted && !info.IsDir():
				failed = append(failed, fmt.Errorf("%s cannot be read: it is no file", name))
			}
			return nil
		})
	}
	walk(root)
	return names, errors.Join(failed...)
}

// matchPath reports whether the parts of a pattern match those of a path.
func matchPath(pattern, name []string) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == "**" {
		for i := range len(name) + 1 {
			if matchPath(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	ok, _ := slash.Match(pattern[0], name[0])
	return ok && matchPath(pattern[1:], name[1:])
}
