// Command readme-check keeps pages true. It is run from the root of the
// repository.
//
//	readme-check commands README.md docs/*.md   print the commands of the sh blocks
//	readme-check instrument DIR README.md ...   prepare runs of tests to report which go blocks they run, of pages and of package comments
//	readme-check ran DIR                        check that they have run all
//	readme-check links                          check the links of all pages to files and headings
//	readme-check names                          check the links of all doc comments to names
//	readme-check defaults                       check the defaults that comments and errors give
//
// An sh block with the comment "<!-- not run: WHY -->" in the line before it is not printed, nor is a go command
// that was printed before.
//
// A go block that begins with a package clause is a whole program and must pass
// go vet. Any other is an excerpt: its code must stand in a test file, and a test
// must run it (see instrument).
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lullgo/lull/ci/internal/tool"
	"github.com/lullgo/lull/internal/must"
)

func main() { must.Main("readme-check", 1, func() error { return run(os.Args[1:]) }) }

func run(args []string) (err error) {
	defer must.Catch(&err)
	command, rest := "", args
	if len(args) > 0 {
		command, rest = args[0], args[1:]
	}
	switch {
	case command == "links" && len(rest) == 0:
		return checkLinks()
	case command == "names" && len(rest) == 0:
		return checkNames()
	case command == "defaults" && len(rest) == 0:
		return checkDefaults()
	case command == "ran" && len(rest) == 1:
		return ran(rest[0])
	case command == "instrument" && len(rest) > 1:
		return instrument(rest[0], rest[1:], read(rest[1:]))
	case command == "commands" && len(rest) > 0:
		script := commands(read(rest))
		if script == "" {
			return fmt.Errorf("no sh block to run in %s", strings.Join(rest, ", "))
		}
		fmt.Print(script)
		return nil
	}
	return errors.New("want commands and the names of files; instrument, a folder and such names; ran and the folder; links; names; or defaults")
}

func read(files []string) (pages []string) {
	for _, file := range files {
		pages = append(pages, tool.ReadFile(file))
	}
	return pages
}

// commands returns what the sh blocks run. A go command that is a line of its own, in no loop, is run once.
func commands(pages []string) string {
	var script strings.Builder
	printed := map[string]bool{}
	for _, page := range pages {
		for _, c := range blocks(page, "sh") {
			if c.skipped {
				continue
			}
			continued := false
			for line := range strings.Lines(c.text) {
				whole := !continued && strings.HasPrefix(line, "go ")
				continued = strings.HasSuffix(line, "\\\n")
				whole = whole && !continued
				if whole && printed[line] {
					continue
				}
				printed[line] = printed[line] || whole
				script.WriteString(line)
			}
		}
	}
	return script.String()
}

type block struct {
	line    int // of its first line, from 1
	text    string
	skipped bool // the line before it is a comment "not run"
}

func blocks(text, language string) []block {
	var found []block
	fence, before := "", "" // before: the last line with text outside of blocks
	for i, line := range slices.Collect(strings.Lines(text)) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(trimmed, "```"):
			fence = trimmed
			if fence == "```"+language {
				found = append(found, block{line: i + 2, skipped: strings.HasPrefix(before, "<!-- not run: ")})
			}
		case fence != "" && trimmed == "```":
			fence, before = "", ""
		case fence == "```"+language:
			found[len(found)-1].text += line
		case fence == "" && trimmed != "":
			before = trimmed
		}
	}
	return found
}

// vet compiles a whole program within the module of the working directory.
func vet(program string) error {
	dir, remove := tool.TempDir("readme")
	defer remove()
	name := filepath.Join(dir, "main.go")
	tool.WriteFile(name, program)
	_, err := tool.Output(exec.Command("go", "vet", name))
	return err
}
