package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/config/lint"
)

// maxFile is the size that a file may have, and a byte more: package config/lint then refuses a
// longer one.
const maxFile = 16<<20 + 1

// read reads the files that the arguments name, each once: files, directories and patterns. The
// error names all that cannot be read.
func read(env cli.Env, arguments []string) (files []lint.File, err error) {
	var failed []error
	known := map[string]bool{}
	add := func(name string, found bool) {
		file := lint.File{Name: name, Found: found}
		if known[name] {
			return
		}
		known[name] = true
		if name == "-" {
			file.Name = "stdin"
		}
		if file.Data, err = env.ReadFile(name, maxFile); err != nil {
			failed = append(failed, err)
			return
		}
		files = append(files, file)
	}
	for _, argument := range arguments {
		if argument == "-" {
			add(argument, false)
			continue
		}
		// A file has one name however it was typed.
		name := filepath.ToSlash(filepath.Clean(argument))
		info, err := os.Stat(name)
		switch {
		case err == nil && info.IsDir():
			names, err := below(name, "**")
			failed = append(failed, err)
			for _, each := range names {
				if isData(each) {
					add(each, true)
				}
			}
		case err != nil && strings.ContainsAny(name, "*?["):
			names, err := matching(name)
			failed = append(failed, err)
			for _, each := range names {
				add(each, true)
			}
		default:
			add(name, false)
		}
	}
	return files, errors.Join(failed...)
}

// isData reports whether a file has an ending of YAML or JSON.
func isData(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name)))
}

// matching returns the files that a pattern is for, in which ** stands for any folders.
func matching(pattern string) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
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
			root = path.Join(root, first)
		}
		rest = after
	}
	names, err := below(root, rest)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s matches no file", pattern)
	}
	return names, err
}

// below returns the files below a folder that a pattern is for, in order. Folders that begin with a
// dot, and those of other people's code, are left out unless the pattern names them.
func below(root, pattern string) (names []string, err error) {
	parts := strings.Split(pattern, "/")
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return cli.CannotRead(err)
		}
		name = filepath.ToSlash(name)
		within := strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
		if root == "." {
			within = name
		}
		if d.IsDir() {
			if base := path.Base(name); name != root && (base[0] == '.' || base == "node_modules" || base == "vendor") && !slices.Contains(parts, base) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
				return nil // a pipe, a socket, or a link that leads to none
			}
		}
		if match(parts, strings.Split(within, "/")) {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// match reports whether the parts of a pattern match those of a path.
func match(pattern, name []string) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == "**" {
		for i := range len(name) + 1 {
			if match(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	ok, _ := path.Match(pattern[0], name[0])
	return ok && match(pattern[1:], name[1:])
}
