package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/term"
)

// printHelp returns a printer of help as kong has it. On a terminal the headings are bold.
func printHelp(env Env) kong.HelpPrinter {
	return func(o kong.HelpOptions, ctx *kong.Context) error {
		style := term.StyleOf(env.Stdout, env.Getenv)
		if !style.Colours() {
			return kong.DefaultHelpPrinter(o, ctx)
		}
		if file, ok := term.Terminal(env.Stdout, env.Getenv); ok { // kong cannot know how wide a buffer is
			if columns, _ := term.Size(file); columns > 0 {
				o.WrapUpperBound = min(o.WrapUpperBound, columns)
			}
		}
		var plain bytes.Buffer
		ctx.Stdout = &plain
		defer func() { ctx.Stdout = env.Stdout }()
		if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
			return err
		}
		_, err := io.WriteString(env.Stdout, withBoldHeadings(style, plain.String()))
		return err
	}
}

// withBoldHeadings marks the headings of help: lines such as "Flags:", and the first word of "Usage: ...".
func withBoldHeadings(style term.Style, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\n")
		word, rest, _ := strings.Cut(bare, ":")
		if word == "Usage" || rest == "" && strings.HasSuffix(bare, ":") && !strings.Contains(word, " ") {
			line = style.In(term.Bold, word+":") + rest + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
