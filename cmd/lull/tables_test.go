package main

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lullgo/lull/internal/check"
)

// Every table of figures in README.md and docs/ carries the command that prints it, and is
// compared here with what the command prints. A table is a Markdown table with a cell that
// begins with a figure, or a block of text with a line of two figures in columns. Its
// command is, in this order:
//
//   - in a comment above it. "check: COMMAND": the output has its lines, in their order.
//     "check figures: COMMAND": the output has each of its figures. "check slowly: COMMAND" and
//     "check figures slowly: COMMAND": the same, only under -slowly. "check figures but COLUMN; COLUMN: COMMAND":
//     those columns are left out; the first one always is. "not checked: WHY" is the only
//     exception
//   - in its own block, as the last command before an empty line
//   - the last command before it in its section: a paragraph that is only a command, or an sh
//     block. The output has the figures of the table
//
// A YAML block whose first line is the comment "# NAME.yaml" is a file of that name, and the
// commands of the page run in its folder. Without one they run at the root of the repository.
//
// The last kind of command may take minutes, and runs only under -slowly:
//
//	go test -tags servers ./cmd/lull -run TestTablesOfTheDocs -timeout 0 -v -args -slowly

// docPage has the parts of a page that are compared.
type docPage struct {
	tables []docTable
	files  map[string]string
}

type docTable struct {
	line    int // of its first line, from 1
	lines   []string
	command string
	figures bool   // only they are compared
	but     string // in columns other than these, separated by a semicolon and a blank
	slow    bool
	why     string // it is not checked
}

var (
	// mark is a comment that sets how the next table is checked.
	mark = regexp.MustCompile(`^<!-- (check|check slowly|check figures(?: slowly)?(?: but [^:]+)?|not checked): (.+) -->$`)
	// alone is a paragraph that is only a command.
	alone = regexp.MustCompile("^`((?:lull|go run|go test) [^`]+)`[:.]?$")
	// inDigits is a figure, with its commas.
	inDigits = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)
	// columns are a line's parts that two blanks or more separate.
	columns = regexp.MustCompile(` {2,}`)
	// yamlName is the first line of a block that is a file.
	yamlName = regexp.MustCompile(`^# ([a-z-]+\.yaml)\b`)
)

// readPage finds the tables of a Markdown text, and what belongs to them.
func readPage(text string) docPage {
	page := docPage{files: map[string]string{}}
	lines := strings.Split(text, "\n")
	var marked *docTable   // by the comment just above
	var inSection docTable // the last command
	add := func(at int, body []string, own string) {
		table := docTable{line: at + 1, lines: body, command: own}
		switch {
		case marked != nil:
			table.command, table.figures, table.slow, table.why = marked.command, marked.figures, marked.slow, marked.why
			table.but = marked.but
		case own == "":
			table.command, table.figures, table.slow = inSection.command, inSection.figures, inSection.slow
		}
		page.tables = append(page.tables, table)
	}
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		switch {
		case strings.HasPrefix(line, "```"):
			from := i + 1
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			}
			body := lines[from:min(i, len(lines))]
			if name := yamlName.FindStringSubmatch(strings.Join(body[:min(1, len(body))], "")); name != nil && line == "```yaml" {
				page.files[name[1]] = strings.Join(body, "\n") + "\n"
			}
			if line == "```sh" {
				inSection = docTable{command: strings.Join(body, "\n"), figures: true, slow: true}
			}
			if line == "```text" {
				own, rest := ownCommand(body)
				if slices.ContainsFunc(rest, inColumns) {
					add(from, rest, own)
				}
			}
		case strings.HasPrefix(line, "|"):
			from := i
			for ; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
			}
			body := lines[from:i]
			i--
			if slices.ContainsFunc(body, inCells) {
				add(from, body, "")
			}
		case strings.HasPrefix(line, "#"):
			inSection = docTable{}
		case mark.MatchString(line):
			m := mark.FindStringSubmatch(line)
			marked = &docTable{command: m[2], figures: strings.Contains(m[1], "figures"), slow: strings.Contains(m[1], "slowly")}
			_, marked.but, _ = strings.Cut(m[1], " but ")
			if m[1] == "not checked" {
				marked.command, marked.why = "", m[2]
			}
			continue
		case alone.MatchString(line) && (i == 0 || strings.TrimSpace(lines[i-1]) == ""):
			inSection = docTable{command: alone.FindStringSubmatch(line)[1], slow: true}
		}
		if line != "" {
			marked = nil
		}
	}
	return page
}

// ownCommand returns the last command before the first empty line of a block, and the lines
// after that line; without a command, all lines.
func ownCommand(body []string) (string, []string) {
	empty := slices.Index(body, "")
	if empty <= 0 || !strings.HasPrefix(body[0], "lull ") && !strings.HasPrefix(body[0], "go ") {
		return "", body
	}
	last := empty - 1
	for last > 0 && strings.HasSuffix(body[last-1], `\`) {
		last--
	}
	return strings.Join(body[last:empty], "\n"), body[empty+1:]
}

func startsWithFigure(s string) bool {
	s = strings.TrimLeft(strings.TrimSpace(s), "*−-±")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// inColumns reports whether two columns of the line are figures.
func inColumns(line string) bool {
	n := 0
	for _, part := range columns.Split(strings.TrimSpace(line), -1) {
		if startsWithFigure(part) {
			n++
		}
	}
	return n >= 2
}

// tableCells returns the cells of a line of a Markdown table.
func tableCells(line string) []string {
	line = strings.TrimSpace(line)
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// inCells reports whether a cell of the line, other than the first, is a figure.
func inCells(line string) bool {
	return slices.ContainsFunc(tableCells(line)[1:], startsWithFigure)
}

// printed reports whether one of the figures in an output is this one, or would be if it were
// rounded to as many digits.
func printed(figure string, out []string) bool {
	value := func(s string) float64 {
		v, _ := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		return v
	}
	_, digits, _ := strings.Cut(figure, ".")
	half := 0.5000001 * math.Pow10(-len(digits))
	want := value(figure)
	return slices.ContainsFunc(out, func(s string) bool {
		return value(s) == want || strings.Contains(s, ".") && math.Abs(value(s)-want) <= half
	})
}

// missingFrom returns the first line or figure of the table that the output does not have.
func (d *docTable) missingFrom(out string) string {
	if d.figures {
		there := inDigits.FindAllString(out, -1)
		heads, but := tableCells(d.lines[0]), strings.Split(d.but, "; ")
		for n, line := range d.lines {
			if n == 0 || !inCells(line) {
				continue
			}
			for i, cell := range tableCells(line) {
				if i == 0 || i < len(heads) && slices.Contains(but, heads[i]) {
					continue
				}
				for _, f := range inDigits.FindAllString(cell, -1) {
					if !printed(f, there) {
						return f + " of " + line
					}
				}
			}
		}
		return ""
	}
	left := strings.Split(out, "\n")
	for _, line := range d.lines {
		want := strings.Fields(line)
		if len(want) == 0 || slices.Equal(want, []string{"..."}) {
			continue
		}
		at := slices.IndexFunc(left, func(l string) bool { return slices.Equal(strings.Fields(l), want) })
		if at < 0 {
			return line
		}
		left = left[at+1:]
	}
	return ""
}

// Only what is missing from an output is found.
func TestMissingFrom(t *testing.T) {
	for _, c := range []struct {
		lines, out, want string
		figures          bool
	}{
		{"a  1\n\n...\nb  2", "x\na 1\ny\n b   2\n", "", false},
		{"b  2\na  1", "a 1\nb 2", "a  1", false},
		{"a  1", "a 1.5", "a  1", false},
		{"| n | 7 |\n| a | 1,000 | **2.5** of 3 |", "1000 2.4501\n3", "", true},
		{"| n | x |\n| a | 3 |", "3.6 2.4 33", "3 of | a | 3 |", true},
		{"| n | x | y |\n| a | 10 | 4 |", "10 44", "4 of | a | 10 | 4 |", true},
		{"| n | theirs | ours |\n| a | 10 | 4 |\n| | 11 | 4 |", "4", "", true},
	} {
		d := docTable{lines: strings.Split(c.lines, "\n"), figures: c.figures, but: "theirs"}
		check.Equal(t, d.missingFrom(c.out), c.want, "%q in %q: missing", c.lines, c.out)
	}
}
