package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

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
func readWorkspace(root string) []*mod {
	work := must.Have(modfile.ParseWork("go.work", must.Have(os.ReadFile(filepath.Join(root, "go.work"))), nil))
	byPath := map[string]*mod{}
	var all []*mod
	for _, use := range work.Use {
		m := &mod{dir: path.Clean(use.Path)}
		name := filepath.Join(root, filepath.FromSlash(m.dir), "go.mod")
		m.file = must.Have(modfile.Parse(name, must.Have(os.ReadFile(name)), nil))
		m.path = m.file.Module.Mod.Path
		byPath[m.path] = m
		all = append(all, m)
	}
	for _, m := range all {
		if want := path.Join(all[0].path, m.dir); m.path != want {
			must.Fail("%s/go.mod: the module is %s; by its folder it must be %s", m.dir, m.path, want)
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
func sorted(all []*mod) (done []*mod) {
	for len(done) < len(all) {
		before := len(done)
		for _, m := range all {
			ready := !slices.ContainsFunc(m.needed, func(n *mod) bool { return !slices.Contains(done, n) })
			if ready && !slices.Contains(done, m) {
				done = append(done, m)
			}
		}
		if len(done) == before {
			must.Fail("modules of go.work require each other in a circle")
		}
	}
	return done
}

// setVersion gives every module of the tree the version, and packs it into a file-system proxy.
// It returns the files that it changed, from the root of the tree, with their contents.
func setVersion(tree, proxy string, modules []*mod, version string) map[string][]byte {
	changed := map[string][]byte{}
	for _, m := range modules {
		m.requireVersion(version, modules)
		rewrite(changed, tree, path.Join(m.dir, "go.mod"), must.Have(m.file.Format()))
		sums, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(m.dir), "go.sum"))
		if !os.IsNotExist(err) {
			must.Succeed(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(sums), "\n"), "\n")
		for _, n := range m.needed {
			lines = append(lines, n.sums...)
		}
		slices.Sort(lines)
		lines = slices.DeleteFunc(slices.Compact(lines), func(l string) bool { return l == "" })
		if len(lines) > 0 {
			rewrite(changed, tree, path.Join(m.dir, "go.sum"), []byte(strings.Join(lines, "\n")+"\n"))
		}
		m.pack(tree, proxy, version)
	}
	return changed
}

func (m *mod) requireVersion(version string, modules []*mod) {
	for _, n := range m.needed {
		must.Succeed(m.file.AddRequire(n.path, version))
	}
	for _, r := range slices.Clone(m.file.Replace) {
		ours := slices.ContainsFunc(modules, func(o *mod) bool { return o.path == r.Old.Path })
		if !ours || !modfile.IsDirectoryPath(r.New.Path) {
			must.Fail("%s/go.mod replaces %s: go install would refuse that, and only a folder of this repository is put in by a version", m.dir, r.Old.Path)
		}
		must.Succeed(m.file.DropReplace(r.Old.Path, r.Old.Version))
	}
	m.file.Cleanup()
}

// rewrite writes a file of the tree and notes it, if that changes it.
func rewrite(changed map[string][]byte, tree, name string, text []byte) {
	file := filepath.Join(tree, filepath.FromSlash(name))
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return
	}
	changed[name] = text
	tool.WriteFile(file, text)
}

// pack adds the module to the proxy: what GOPROXY=file://PROXY is asked for.
func (m *mod) pack(tree, proxy, version string) {
	dir := filepath.Join(tree, filepath.FromSlash(m.dir))
	// A module in a folder without a license gets that of the repository, as the go command
	// does it. Its hash is the one that everybody will compute.
	license := filepath.Join(dir, "LICENSE")
	if _, err := os.Stat(license); os.IsNotExist(err) {
		tool.WriteFile(license, tool.ReadFile(filepath.Join(tree, "LICENSE")))
	}
	at := filepath.Join(proxy, filepath.FromSlash(must.Have(module.EscapePath(m.path))), "@v")
	var packed bytes.Buffer
	must.Succeed(zip.CreateFromDir(&packed, module.Version{Path: m.path, Version: version}, dir))
	zipped := filepath.Join(at, version+".zip")
	for name, text := range map[string]string{
		version + ".zip":  packed.String(),
		version + ".mod":  tool.ReadFile(filepath.Join(dir, "go.mod")),
		version + ".info": fmt.Sprintf(`{"Version":%q}`, version),
		"list":            version + "\n",
	} {
		tool.WriteFile(filepath.Join(at, name), text)
	}
	open := func(string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, "go.mod")) }
	m.sums = []string{
		fmt.Sprintf("%s %s %s", m.path, version, must.Have(dirhash.HashZip(zipped, dirhash.Hash1))),
		fmt.Sprintf("%s %s/go.mod %s", m.path, version, must.Have(dirhash.Hash1([]string{"go.mod"}, open))),
	}
}
