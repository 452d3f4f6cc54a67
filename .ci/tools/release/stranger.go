package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

// A stranger uses the packed modules as somebody who has only Go. It has its own folders for all
// that Go keeps of modules. The folder of compiled packages is shared: packages that are built
// with -trimpath are the same wherever they stand.
type stranger struct {
	ctx  context.Context
	home string
	out  io.Writer
	env  []string
	bin  string // where go install puts programs
}

func newStranger(ctx context.Context, tmp string, out io.Writer) *stranger {
	s := &stranger{ctx: ctx, home: filepath.Join(tmp, "stranger"), out: out}
	s.bin = filepath.Join(s.home, "go", "bin")
	proxy := "file://" + filepath.ToSlash(filepath.Join(tmp, "proxy"))
	cache := strings.TrimSpace(must.Have(tool.Output(exec.Command("go", "env", "GOMODCACHE"))))
	proxy += ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")) // third parties' modules
	s.env = append(os.Environ(),
		"GOWORK=off", "GOENV=off", "GOTOOLCHAIN=local", "GOBIN=",
		"GOFLAGS=-mod=mod -trimpath -modcacherw",
		"GOPATH="+filepath.Join(s.home, "go"), "GOMODCACHE="+filepath.Join(s.home, "mod"),
		"GOPROXY="+proxy, "GOSUMDB=off", "GONOPROXY=", "GOPRIVATE=", // nothing of the network
	)
	return s
}

func (s *stranger) run(dir string, env []string, name string, args ...string) string {
	c := exec.CommandContext(s.ctx, name, args...)
	c.Dir, c.Env = dir, append(s.env[:len(s.env):len(s.env)], env...)
	text, err := c.CombinedOutput()
	if err != nil {
		must.Fail("%s %s (in %s): %w\n%s", name, strings.Join(args, " "), dir, err, text)
	}
	return string(text)
}

// prove fetches each module, compiles its packages, and installs and runs its programs.
func (s *stranger) prove(modules []*mod, programs []program, version string) {
	for _, m := range modules {
		began := time.Now()
		packages := s.buildWith(m, version)
		fmt.Fprintf(s.out, "%5.1f s  go get %s@%s, and compile %d packages of it\n", time.Since(began).Seconds(), m.path, version, packages)
	}
	for _, p := range programs {
		began := time.Now()
		target := modules[0].path + "/" + p.path + "@" + version
		s.run(s.home, nil, "go", "install", target)
		for _, args := range p.runs {
			text := s.run(s.home, nil, filepath.Join(s.bin, path.Base(p.path)), args...)
			if args[0] == "--version" && !strings.Contains(text, version) {
				must.Fail("%s --version printed %q, without %s", path.Base(p.path), text, version)
			}
		}
		fmt.Fprintf(s.out, "%5.1f s  go install %s, and run it\n", time.Since(began).Seconds(), target)
	}
}

// A program is one that users install.
type program struct {
	path   string     // below the root
	runs   [][]string // arguments to try it with
	prints []printed  // what it prints of itself, for the archives
}

type printed struct {
	file string
	args []string
}

var ofLull = []program{
	{"cmd/lull", [][]string{
		{"--version"},
		{"demo", "--plain", "--duration", "4s", "--timeout", "200ms"},
		{"simulate", "--quiet", "--policy", "none,lull"},
	}, []printed{
		{"lull.1", []string{"man"}},
		{"completion/lull.bash", []string{"completion", "bash"}},
		{"completion/_lull", []string{"completion", "zsh"}},
		{"completion/lull.fish", []string{"completion", "fish"}},
	}},
	{"cmd/lull/lull-queue", [][]string{{"--version"}, {"inspect", "--help"}}, nil},
}

// buildWith compiles a package, in a module of its own, that imports every package of m that others
// may import. It returns how many packages that are.
func (s *stranger) buildWith(m *mod, version string) (packages int) {
	dir := filepath.Join(s.home, "with", filepath.FromSlash(m.dir), "program")
	tool.WriteFile(filepath.Join(dir, "go.mod"), "module example.com/program\n\ngo 1.26\n")
	s.run(dir, nil, "go", "get", m.path+"@"+version)
	found := s.run(dir, nil, "go", "list", "-f", `{{if .GoFiles}}{{with .Module}}{{.Path}}{{end}} {{.Name}} {{.ImportPath}}{{end}}`, m.path+"/...")
	program := "package program\n\n"
	for line := range strings.Lines(found) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != m.path || words[1] == "main" || strings.Contains("/"+words[2]+"/", "/internal/") {
			continue
		}
		packages++
		program += fmt.Sprintf("import _ %q\n", words[2])
	}
	tool.WriteFile(filepath.Join(dir, "program.go"), program)
	s.run(dir, nil, "go", "build", ".")
	return packages
}
