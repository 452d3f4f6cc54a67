//go:build servers

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

var slowly = flag.Bool("slowly", false, "also run the commands of tables that take minutes")

// TestMain is the program itself when a command in a page calls it.
func TestMain(m *testing.M) {
	if os.Getenv("LULL_TEST_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const repository = "../.."

func TestTablesOfTheDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: simulations that are the same every time")
	}
	pages, err := filepath.Glob(repository + "/docs/*.md")
	if err != nil || len(pages) < 8 {
		t.Fatal(pages, err)
	}
	ofLab, err := filepath.Glob(repository + "/lab/*/[A-Z]*.md")
	if err != nil || len(ofLab) < 4 {
		t.Fatal(ofLab, err)
	}
	lull := programFolder(t)
	checked := 0
	for _, path := range slices.Concat(pages, ofLab, []string{repository + "/README.md"}) {
		text := must.Have(os.ReadFile(path))
		page := readPage(string(text))
		folder := folderOf(t, page.files)
		runs := map[string]func() (string, error){}
		for _, table := range page.tables {
			name := fmt.Sprintf("%s:%d", strings.TrimPrefix(path, repository+"/"), table.line)
			switch {
			case table.why != "":
				continue
			case table.command == "":
				t.Errorf("%s: a table of figures without its command; see this test", name)
				continue
			case table.slow && !*slowly:
				t.Logf("%s is for -slowly: %s", name, table.command)
				continue
			}
			checked++
			run := runs[table.command]
			if run == nil {
				run = sync.OnceValues(func() (string, error) { return runCommand(t.Context(), lull, folder, table.command) })
				runs[table.command] = run
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				out, err := run()
				if err != nil {
					t.Fatalf("%s\n%v\n%s", table.command, err, out)
				}
				t.Logf("%.1f s: %s", time.Since(began).Seconds(), table.command)
				check.Equal(t, table.missingFrom(out), "", "%s does not print\n%s\nin particular", table.command, out)
			})
		}
	}
	if checked < 12 {
		t.Errorf("only %d tables were checked: are some not found?", checked)
	}
}

// programFolder returns a folder with a program lull in it.
func programFolder(t *testing.T) string {
	self := must.Have(os.Executable())
	folder := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nLULL_TEST_PROGRAM=1 exec '%s' \"$@\"\n", self)
	must.Succeed(os.WriteFile(filepath.Join(folder, "lull"), []byte(script), 0o755))
	return folder
}

// folderOf returns a folder with the files in it, or the root of the repository if there are none.
func folderOf(t *testing.T, files map[string]string) string {
	if len(files) == 0 {
		return repository
	}
	folder := t.TempDir()
	for name, text := range files {
		must.Succeed(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	return folder
}

func runCommand(ctx context.Context, lull, folder, command string) (string, error) {
	if _, err := exec.LookPath("bash"); err != nil {
		return "", errors.New("the commands of tables need bash")
	}
	if strings.Contains(command, "go run ") || strings.Contains(command, "go test ") {
		folder = repository
	}
	c := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command)
	c.Dir = folder
	c.Env = append(os.Environ(), "PATH="+lull+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	return string(out), err
}
