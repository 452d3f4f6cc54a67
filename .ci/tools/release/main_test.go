package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// clone makes a git repository of three modules that require each other, as lull's do.
func clone(t *testing.T) string {
	t.Helper()
	identify(t)
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.work":              "go 1.26\n\nuse (\n\t.\n\t./cmd/thing\n\t./extra\n)\n",
		"go.mod":               "module github.com/example/thing\n\ngo 1.26\n",
		"thing.go":             "package thing\n\nconst Answer = 42\n",
		"internal/deep/it.go":  "package deep\n",
		"extra/go.mod":         "module github.com/example/thing/extra\n\ngo 1.26\n\nrequire github.com/example/thing v0.0.0\n\nreplace github.com/example/thing => ..\n",
		"extra/extra.go":       "package extra\n\nimport \"github.com/example/thing\"\n\nconst Answer = thing.Answer\n",
		"cmd/thing/go.mod":     "module github.com/example/thing/cmd/thing\n\ngo 1.26\n\nrequire (\n\tgithub.com/example/thing v0.0.0\n\tgithub.com/example/thing/extra v0.0.0\n)\n\nreplace (\n\tgithub.com/example/thing => ../..\n\tgithub.com/example/thing/extra => ../../extra\n)\n",
		"cmd/thing/main.go":    "package main\n\nimport \"github.com/example/thing/extra\"\n\nfunc main() { println(extra.Answer) }\n",
		"LICENSE":              "All of it is free.\n",
		"CHANGELOG.md":         "# Changelog\n\n## v0.1.0 (today)\n",
		"scripts/.hidden/file": "x\n",
	} {
		tool.WriteFile(filepath.Join(root, name), text)
	}
	git(root, "init", "-q", "-b", "main")
	git(root, "add", ".")
	git(root, "commit", "-q", "-m", "All of it")
	return root
}

func git(root string, args ...string) string { return must.Have(repository{root}.git(nil, args...)) }

// identify gives git somebody to be, and no configuration of the machine's.
func identify(t *testing.T) {
	t.Helper()
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "A Tester")
		t.Setenv("GIT_"+who+"_EMAIL", "tester@example.com")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
}

func state(root string) string {
	return strings.Join([]string{git(root, "show-ref", "--heads"), git(root, "status", "--porcelain"), git(root, "ls-files", "--stage"), git(root, "symbolic-ref", "HEAD")}, "\n")
}

// The go command itself fetches the tags, from the repository and not from what was packed.
func TestTheTagsCanBeInstalled(t *testing.T) {
	root := clone(t)
	before := state(root)
	var out strings.Builder
	if err := release(t.Context(), &out, root, ofTheTest(settings{version: "v0.1.0"})); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	check.Equal(t, state(root), before, "the branch, the index or the files changed")
	check.Equal(t, git(root, "tag", "--list"), "cmd/thing/v0.1.0\nextra/v0.1.0\nv0.1.0", "tags")
	check.Equal(t, git(root, "diff", "--name-only", "HEAD", "v0.1.0"), "cmd/thing/go.mod\ncmd/thing/go.sum\nextra/go.mod\nextra/go.sum", "the release commit changes")
	check.Equal(t, git(root, "rev-parse", "v0.1.0^"), git(root, "rev-parse", "HEAD"), "its parent")
	file := git(root, "show", "v0.1.0:cmd/thing/go.mod")
	if strings.Contains(file, "replace") || !strings.Contains(file, "github.com/example/thing/extra v0.1.0") {
		t.Errorf("go.mod is\n%s", file)
	}

	home := t.TempDir()
	s := &stranger{ctx: t.Context(), home: home, env: append(os.Environ(),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+root+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/example/thing",
		"GOWORK=off", "GOENV=off", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", "GOPATH="+home+"/go", "GOMODCACHE="+home+"/mod", "GOBIN="+home+"/bin",
		"GOPROXY=direct", "GOSUMDB=off", "GOVCS=*:git", "GONOPROXY=", "GOPRIVATE=")}
	s.run(home, nil, "go", "install", "github.com/example/thing/cmd/thing@v0.1.0")
	check.Equal(t, s.run(home, nil, home+"/bin/thing"), "42\n", "printed")
	// go.sum of the release commit has the sums that the go command has computed.
	git(root, "checkout", "-q", "--detach", "v0.1.0")
	s.run(root+"/cmd/thing", []string{"GOFLAGS=-modcacherw -mod=readonly"}, "go", "build", "-o", os.DevNull, ".")

	if err := release(t.Context(), &out, root, ofTheTest(settings{version: "v0.1.0"})); err == nil || !strings.Contains(err.Error(), "v0.1.0 has been tagged") {
		t.Errorf("a second time: %v", err)
	}
}

func TestADryRunMakesNothing(t *testing.T) {
	root := clone(t)
	tool.WriteFile(filepath.Join(root, "new.go"), "package thing\n") // not committed
	before := state(root)
	var out strings.Builder
	if err := release(t.Context(), &out, root, ofTheTest(settings{version: "v0.2.0-rc.1", dryRun: true})); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if after := state(root); after != before || git(root, "tag", "--list") != "" {
		t.Errorf("it changed the repository:\n%s\n%s", before, after)
	}
}

func TestWhatIsNotReleased(t *testing.T) {
	for want, spoil := range map[string]func(root string) settings{
		`"0.1.0" is no version`:                func(string) settings { return settings{version: "0.1.0"} },
		`"v1" is no version`:                   func(string) settings { return settings{version: "v1"} },
		"v2.0.0: from v2 on":                   func(string) settings { return settings{version: "v2.0.0"} },
		`CHANGELOG.md has no section "## v0.9`: func(string) settings { return settings{version: "v0.9.0"} },
		"commit or remove first:\n?? new":      func(root string) settings { tool.WriteFile(root+"/new", ""); return settings{version: "v0.1.0"} },
		"extra/go.mod replaces golang.org/x/x:": func(root string) settings {
			tool.WriteFile(root+"/extra/go.mod", tool.ReadFile(root+"/extra/go.mod")+"\nreplace golang.org/x/x => ../x\n")
			return settings{version: "v0.1.0", dryRun: true}
		},
		"by its folder it must be": func(root string) settings {
			tool.WriteFile(root+"/extra/go.mod", "module github.com/example/other\n")
			return settings{version: "v0.1.0", dryRun: true}
		},
		"missing.Package": func(root string) settings { // a package that nobody can build
			tool.WriteFile(root+"/thing.go", "package thing\n\nvar Answer = missing.Package\n")
			return settings{version: "v0.1.0", dryRun: true}
		},
	} {
		root := clone(t)
		s := spoil(root)
		if err := release(t.Context(), &strings.Builder{}, root, ofTheTest(s)); err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "undefined: missing") {
			t.Errorf("want an error with %q, got %v", want, err)
		}
		check.Equal(t, git(root, "tag", "--list"), "", "%s: tagged", want)
	}
}

func TestModulesFollowThoseTheyRequire(t *testing.T) {
	var dirs []string
	for _, m := range readWorkspace(clone(t)) {
		dirs = append(dirs, m.dir)
	}
	check.Slices(t, dirs, []string{".", "extra", "cmd/thing"}, "dirs")
}
