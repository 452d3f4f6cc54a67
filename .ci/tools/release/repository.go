package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A repository is the clone that is released. Its branch, its index and its files are only read.
type repository struct{ root string }

// git reads a clone of somebody else too: CI runs as whom it likes.
func (r repository) git(env []string, args ...string) (string, error) {
	return output(r.root, env, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
}

// ready returns an error if the clone cannot be released under the version.
func (r repository) ready(version string) error {
	dirty, err := r.git(nil, "status", "--porcelain")
	if err != nil {
		return err
	}
	if dirty != "" {
		return fmt.Errorf("commit or remove first:\n%s", dirty)
	}
	if tags, err := r.git(nil, "tag", "--list", version, "*/"+version); err != nil || tags != "" {
		return errors.Join(err, fmt.Errorf("%s has been tagged: a version that somebody may have fetched is never changed; take the next one", version))
	}
	changes, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(changes)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "##" && words[1] == version {
			return nil
		}
	}
	return fmt.Errorf("CHANGELOG.md has no section %q: give that name to Unreleased, with the date, and commit it", "## "+version)
}

// copyTo copies the files that git knows or would add.
func (r repository) copyTo(tree string) error {
	names, err := r.git(nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(names, "\x00"), "\x00") {
		from, to := filepath.Join(r.root, filepath.FromSlash(name)), filepath.Join(tree, filepath.FromSlash(name))
		info, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not committed yet
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			continue // no module has links
		}
		if err := copyFile(from, to, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// tag makes the release commit and its tags, all of them or none, and returns their names.
func (r repository) tag(changed map[string][]byte, modules []*mod, version string) ([]string, error) {
	folder, err := os.MkdirTemp("", "lull-index-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(folder, "index")} // not the user's
	if _, err := r.git(index, "read-tree", "HEAD"); err != nil {
		return nil, err
	}
	for name, text := range changed {
		file := filepath.Join(folder, "file")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, err
		}
		blob, err := r.git(nil, "hash-object", "-w", "--no-filters", file)
		if err != nil {
			return nil, err
		}
		if _, err := r.git(index, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+name); err != nil {
			return nil, err
		}
	}
	tree, err := r.git(index, "write-tree")
	if err != nil {
		return nil, err
	}
	commit, err := r.git(nil, "commit-tree", tree, "-p", "HEAD", "-m", "Release "+version,
		"-m", "All modules require this version of each other. This commit is on no branch: where lull is developed, they replace it with the folder beside them.")
	if err != nil {
		return nil, err
	}
	var tags []string
	for _, m := range modules {
		if _, err := r.git(nil, "tag", "--annotate", "-m", m.path+" "+version, m.tag(version), commit); err != nil {
			for _, made := range tags {
				_ = exec.Command("git", "-C", r.root, "tag", "--delete", made).Run()
			}
			return nil, err
		}
		tags = append(tags, m.tag(version))
	}
	slices.Sort(tags)
	return tags, nil
}
