// Package man is the command lull man. It prints the manual page of lull, made from the commands and
// flags that the program has, and from the pages of lull help TOPIC.
package man

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/topic"
	"github.com/lullgo/lull/internal/choice"
)

// Command is lull man.
type Command struct{}

func (Command) Help() string {
	return `Prints the manual page of lull: all commands with their flags, and the topics.

  lull man | man -l -
  lull man > ~/.local/share/man/man1/lull.1`
}

func (Command) Run(env cli.Env, ctx *kong.Context) error {
	_, err := io.WriteString(env.Stdout, page(ctx.Model.Node, cli.ModuleVersion()))
	return err
}

// A writer makes a page in the macros of man(7).
type writer struct{ strings.Builder }

func page(root *kong.Node, version string) string {
	w := &writer{}
	w.WriteString("." + `\"` + " Printed by: lull man\n")
	fmt.Fprintf(w, ".TH LULL 1 \"\" %s \"User Commands\"\n", argument(strings.TrimSpace("lull "+version)))
	w.section("name")
	w.text("lull - calls to things that fail, without making the failure worse")
	w.section("synopsis")
	w.WriteString(".B lull\n.I command\n.RI [ argument \" ...] [\" flag \" ...]\"\n.br\n.B lull help\n.RI [ command \" | \" topic ]\n")
	w.section("description")
	w.text(root.Help)
	w.section("commands")
	for _, n := range root.Children {
		if !n.Hidden {
			w.command(n)
		}
	}
	for _, name := range topic.Names {
		w.section(name)
		text, _ := topic.Page(name)
		_, text, _ = strings.Cut(text, "\n") // its heading
		w.text(strings.TrimSpace(text))
	}
	w.section("see also")
	w.text("https://github.com/lullgo/lull/tree/main/docs")
	return w.String()
}

func (w *writer) section(name string) {
	fmt.Fprintf(w, ".SH %s\n", argument(strings.ToUpper(strings.ReplaceAll(name, "-", " "))))
}

func (w *writer) command(n *kong.Node) {
	fmt.Fprintf(w, ".SS %s\n", argument("lull "+n.Summary()))
	w.text(n.Help)
	if n.Detail != "" {
		w.WriteString(".PP\n")
		w.text(n.Detail)
	}
	for _, p := range n.Positional {
		w.item(".I "+argument(strings.Trim(p.Summary(), "[]<>. ")), p.Help)
	}
	for _, f := range n.Flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		name := choice.Either(f.Short != 0, ".B "+argument(fmt.Sprintf("-%c, --%s", f.Short, f.Name)), ".B "+argument("--"+f.Name))
		if !f.IsBool() {
			name = ".BI " + strings.TrimPrefix(name, ".B ") + " = " + argument(f.FormatPlaceHolder())
		}
		w.item(name, f.Help)
	}
	for _, below := range n.Children {
		w.command(below)
	}
}

func (w *writer) item(name, help string) {
	fmt.Fprintf(w, ".TP\n%s\n", name)
	w.text(help)
}

// text writes paragraphs. Lines that are indented stay as they are: examples and tables.
func (w *writer) text(text string) {
	verbatim := false
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		indented := strings.HasPrefix(line, " ")
		switch {
		case line == "" && !verbatim:
			w.WriteString(".PP\n")
			continue
		case indented && !verbatim:
			w.WriteString(".RS 2\n.nf\n")
		case verbatim && !indented && line != "":
			w.WriteString(".fi\n.RE\n")
		}
		verbatim = verbatim && line == "" || indented
		w.WriteString(escaped(line) + "\n")
	}
	if verbatim {
		w.WriteString(".fi\n.RE\n")
	}
}

// escaped returns a line of text that roff takes for nothing else.
func escaped(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}

func argument(text string) string {
	return `"` + strings.ReplaceAll(escaped(text), `"`, `\(dq`) + `"`
}
