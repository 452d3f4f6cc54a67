package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

// A repository is the clone that is released. Its branch, its index and its files are only read.
type repository struct{ root string }

// git runs git, which reads a clone of somebody else too: CI runs as whom it likes.
func (r repository) git(env []string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), env...)
	text, err := tool.Output(cmd)
	return strings.TrimSpace(text), err
}

// checkReady fails if the clone cannot be released under the version.
func (r repository) checkReady(version string) {
	if dirty := must.Have(r.git(nil, "status", "--porcelain")); dirty != "" {
		must.Fail("commit or remove first:\n%s", dirty)
	}
	if must.Have(r.git(nil, "tag", "--list", version, "*/"+version)) != "" {
		must.Fail("%s has been tagged: a version that somebody may have fetched is never changed; take the next one", version)
	}
	for line := range strings.Lines(tool.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "##" && words[1] == version {
			return
		}
	}
	must.Fail("CHANGELOG.md has no section %q: give that name to Unreleased, with the date, and commit it", "## "+version)
}

// copyTo copies the files that git knows or would add.
func (r repository) copyTo(tree string) {
	names := must.Have(r.git(nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
	for name := range strings.SplitSeq(strings.TrimRight(names, "\x00"), "\x00") {
		from, to := filepath.Join(r.root, filepath.FromSlash(name)), filepath.Join(tree, filepath.FromSlash(name))
		info, err := os.Lstat(from)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		must.Succeed(err)
		if !info.Mode().IsRegular() {
			continue // no module has links
		}
		tool.WriteFile(to, tool.ReadFile(from))
		must.Succeed(os.Chmod(to, info.Mode().Perm()))
	}
}

// tag makes the release commit and its tags, all of them or none, and returns their names.
func (r repository) tag(changed map[string][]byte, modules []*mod, version string) (tags []string) {
	folder, remove := tool.TempDir("lull-index-")
	defer remove()
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(folder, "index")} // not the user's
	must.Have(r.git(index, "read-tree", "HEAD"))
	for name, text := range changed {
		file := filepath.Join(folder, "file")
		tool.WriteFile(file, text)
		blob := must.Have(r.git(nil, "hash-object", "-w", "--no-filters", file))
		must.Have(r.git(index, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+name))
	}
	tree := must.Have(r.git(index, "write-tree"))
	commit := must.Have(r.git(nil, "commit-tree", tree, "-p", "HEAD", "-m", "Release "+version,
		"-m", "All modules require this version of each other. This commit is on no branch: where lull is developed, they replace it with the folder beside them."))
	for _, m := range modules {
		if _, err := r.git(nil, "tag", "--annotate", "-m", m.path+" "+version, m.tag(version), commit); err != nil {
			r.git(nil, append([]string{"tag", "--delete"}, tags...)...)
			must.Succeed(err)
		}
		tags = append(tags, m.tag(version))
	}
	slices.Sort(tags)
	return tags
}
