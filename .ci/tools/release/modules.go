package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// A mod is a module of the workspace.
type mod struct {
	path   string
	dir    string // from the root, with slashes
	file   *modfile.File
	sums   []string // the lines of go.sum that others need of it, when it is packed
	needed []*mod   // modules of the workspace that it requires
}

// tag is the name that the go command looks for.
func (m *mod) tag(version string) string { return path.Join(m.dir, version) }

// readWorkspace returns the modules of go.work, each after those that it requires.
func readWorkspace(root string) ([]*mod, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, err
	}
	byPath := map[string]*mod{}
	var all []*mod
	for _, use := range work.Use {
		m := &mod{dir: path.Clean(use.Path)}
		name := filepath.Join(root, filepath.FromSlash(m.dir), "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if m.file, err = modfile.Parse(name, text, nil); err != nil {
			return nil, err
		}
		m.path = m.file.Module.Mod.Path
		byPath[m.path] = m
		all = append(all, m)
	}
	for _, m := range all {
		if want := path.Join(all[0].path, m.dir); m.path != want {
			return nil, fmt.Errorf("%s/go.mod: the module is %s; by its folder it must be %s", m.dir, m.path, want)
		}
		for _, r := range m.file.Require {
			if other := byPath[r.Mod.Path]; other != nil {
				m.needed = append(m.needed, other)
			}
		}
	}
	return sorted(all)
}

// sorted puts each module after those that it requires, and otherwise keeps the order.
func sorted(all []*mod) ([]*mod, error) {
	var done []*mod
	for len(done) < len(all) {
		before := len(done)
		for _, m := range all {
			ready := !slices.ContainsFunc(m.needed, func(n *mod) bool { return !slices.Contains(done, n) })
			if ready && !slices.Contains(done, m) {
				done = append(done, m)
			}
		}
		if len(done) == before {
			return nil, errors.New("modules of go.work require each other in a circle")
		}
	}
	return done, nil
}

// setVersion gives every module of the tree the version, and packs it into a file-system proxy.
// It returns the files that it changed, from the root of the tree, with their contents.
func setVersion(tree, proxy string, modules []*mod, version string) (map[string][]byte, error) {
	changed := map[string][]byte{}
	for _, m := range modules {
		dir := filepath.Join(tree, filepath.FromSlash(m.dir))
		if err := m.requireVersion(version, modules); err != nil {
			return nil, err
		}
		text, err := m.file.Format()
		if err != nil {
			return nil, err
		}
		if err := rewrite(changed, tree, path.Join(m.dir, "go.mod"), text); err != nil {
			return nil, err
		}
		sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		lines := strings.Split(strings.TrimSuffix(string(sums), "\n"), "\n")
		for _, n := range m.needed {
			lines = append(lines, n.sums...)
		}
		slices.Sort(lines)
		lines = slices.DeleteFunc(slices.Compact(lines), func(l string) bool { return l == "" })
		if len(lines) > 0 {
			if err := rewrite(changed, tree, path.Join(m.dir, "go.sum"), []byte(strings.Join(lines, "\n")+"\n")); err != nil {
				return nil, err
			}
		}
		if err := m.pack(tree, proxy, version); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// requireVersion changes the module's requirements.
func (m *mod) requireVersion(version string, modules []*mod) error {
	ours := func(path string) bool {
		return slices.ContainsFunc(modules, func(o *mod) bool { return o.path == path })
	}
	for _, n := range m.needed {
		if err := m.file.AddRequire(n.path, version); err != nil {
			return err
		}
	}
	for _, r := range slices.Clone(m.file.Replace) {
		if !ours(r.Old.Path) || !modfile.IsDirectoryPath(r.New.Path) {
			return fmt.Errorf("%s/go.mod replaces %s: go install would refuse that, and only a folder of this repository is put in by a version", m.dir, r.Old.Path)
		}
		if err := m.file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	m.file.Cleanup()
	return nil
}

// rewrite writes a file of the tree and notes it, if that changes it.
func rewrite(changed map[string][]byte, tree, name string, text []byte) error {
	file := filepath.Join(tree, filepath.FromSlash(name))
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return nil
	}
	changed[name] = text
	return os.WriteFile(file, text, 0o644)
}

// pack adds the module to the proxy: what GOPROXY=file://PROXY is asked for.
func (m *mod) pack(tree, proxy, version string) error {
	dir := filepath.Join(tree, filepath.FromSlash(m.dir))
	// A module in a folder without a license gets that of the repository, as the go command
	// does it. Its hash is the one that everybody will compute.
	license := filepath.Join(dir, "LICENSE")
	if _, err := os.Stat(license); errors.Is(err, fs.ErrNotExist) {
		text, err := os.ReadFile(filepath.Join(tree, "LICENSE"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(license, text, 0o644); err != nil {
			return err
		}
	}
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	at := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	packed, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	defer packed.Close()
	if err := zip.CreateFromDir(packed, module.Version{Path: m.path, Version: version}, dir); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	file, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		version + ".mod":  string(file),
		version + ".info": fmt.Sprintf(`{"Version":%q}`, version),
		"list":            version + "\n",
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	sum, err := dirhash.HashZip(packed.Name(), dirhash.Hash1)
	if err != nil {
		return err
	}
	fileSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, "go.mod")) })
	if err != nil {
		return err
	}
	m.sums = []string{
		fmt.Sprintf("%s %s %s", m.path, version, sum),
		fmt.Sprintf("%s %s/go.mod %s", m.path, version, fileSum),
	}
	return nil
}
