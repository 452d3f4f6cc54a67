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
	if cache, err := output("", nil, "go", "env", "GOMODCACHE"); err == nil {
		proxy += ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")) // third parties' modules
	}
	s.env = append(os.Environ(),
		"GOWORK=off", "GOENV=off", "GOTOOLCHAIN=local", "GOBIN=",
		"GOFLAGS=-mod=mod -trimpath -modcacherw",
		"GOPATH="+filepath.Join(s.home, "go"), "GOMODCACHE="+filepath.Join(s.home, "mod"),
		"GOPROXY="+proxy, "GOSUMDB=off", "GONOPROXY=", "GOPRIVATE=", // nothing of the network
	)
	return s
}

// run runs a command in dir and returns all that it printed.
func (s *stranger) run(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(s.ctx, name, args...)
	c.Dir, c.Env = dir, append(s.env[:len(s.env):len(s.env)], env...)
	text, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, text)
	}
	return string(text), nil
}

// prove fetches each module, compiles its packages, and installs and runs its programs.
func (s *stranger) prove(modules []*mod, programs []program, version string) error {
	for _, m := range modules {
		began := time.Now()
		packages, err := s.buildWith(m, version)
		if err != nil {
			return fmt.Errorf("%s@%s: %w", m.path, version, err)
		}
		fmt.Fprintf(s.out, "%5.1f s  go get %s@%s, and compile %d packages of it\n", time.Since(began).Seconds(), m.path, version, packages)
	}
	for _, p := range programs {
		began := time.Now()
		target := modules[0].path + "/" + p.path + "@" + version
		if _, err := s.run(s.home, nil, "go", "install", target); err != nil {
			return err
		}
		for _, args := range p.runs {
			name := filepath.Join(s.bin, path.Base(p.path))
			text, err := s.run(s.home, nil, name, args...)
			if err != nil {
				return err
			}
			if args[0] == "--version" && !strings.Contains(text, version) {
				return fmt.Errorf("%s --version printed %q, without %s", path.Base(p.path), text, version)
			}
		}
		fmt.Fprintf(s.out, "%5.1f s  go install %s, and run it\n", time.Since(began).Seconds(), target)
	}
	return nil
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

// ofLull are the programs of lull.
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
func (s *stranger) buildWith(m *mod, version string) (int, error) {
	dir := filepath.Join(s.home, "with", filepath.FromSlash(m.dir), "program")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/program\n\ngo 1.26\n"), 0o644); err != nil {
		return 0, err
	}
	if _, err := s.run(dir, nil, "go", "get", m.path+"@"+version); err != nil {
		return 0, err
	}
	found, err := s.run(dir, nil, "go", "list", "-f", `{{if .GoFiles}}{{with .Module}}{{.Path}}{{end}} {{.Name}} {{.ImportPath}}{{end}}`, m.path+"/...")
	if err != nil {
		return 0, err
	}
	var program strings.Builder
	program.WriteString("package program\n\n")
	packages := 0
	for line := range strings.Lines(found) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != m.path || words[1] == "main" || strings.Contains("/"+words[2]+"/", "/internal/") {
			continue
		}
		packages++
		fmt.Fprintf(&program, "import _ %q\n", words[2])
	}
	if err := os.WriteFile(filepath.Join(dir, "program.go"), []byte(program.String()), 0o644); err != nil {
		return 0, err
	}
	_, err = s.run(dir, nil, "go", "build", ".")
	return packages, err
}
