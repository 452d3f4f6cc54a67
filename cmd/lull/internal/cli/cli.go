// Package cli has the parts of the command line that the commands share: the process around them, the types of their flags,
// and how a command ends. Each command is a struct of flags with a Run method that takes an Env. Help is shown above its
// flags, Check returns what is wrong with them, and Complete the values that are known of them.
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/lullgo/lull/cmd/lull/internal/term"
	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/internal/problem"
)

// Exit codes of all commands.
const (
	OK      = 0
	Failed  = 1
	Misused = 2 // the command line is wrong
)

// Env is the part of its process that a command may use.
type Env struct {
	Context        context.Context // ends when the user interrupts the command
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
}

// Fail gives an error an exit code of its own. Nil stays nil.
func Fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return coded{err, code}
}

type coded struct {
	error
	code int
}

func (f coded) Unwrap() error { return f.error }

// Main calls run with the real process, and exits with its code. The first interrupt ends Env.Context, the second the process.
func Main(run func(Env, []string) int) {
	ctx, interrupt := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		interrupt(errors.New("interrupted"))
	}()
	os.Exit(run(Env{Context: ctx, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}, os.Args[1:]))
}

// Run runs the command that the arguments name, of a struct that kong understands, prints its error, and returns the exit code.
func Run(env Env, commands any, args []string) int {
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "--version":
		_, err := fmt.Fprintln(env.Stdout, Version())
		return Exit(env, err)
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	helped := false
	parser, err := kong.New(commands,
		kong.Name("lull"),
		kong.Description("lull makes calls to things that fail, without making the failure worse."),
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: term.Width}),
		kong.Help(printHelp(env)),
	)
	if err != nil {
		return Exit(env, err)
	}
	parser.Model.HelpFlag.Help = "Show this help."
	parsed, err := parser.Parse(args)
	switch {
	case helped:
		return OK
	case err != nil:
		return Exit(env, Fail(misused(err), allMistakes(parser, args, err)))
	}
	return Exit(env, parsed.Run(env))
}

// Exit prints err, after a mistake in the command line also what is allowed, and returns its exit code.
func Exit(env Env, err error) int {
	if err == nil {
		return OK
	}
	name := term.StyleOf(env.Stderr, env.Getenv).In(term.Bold+term.Red, "lull:")
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(env.Stderr, name, strings.TrimSpace(line))
	}
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		fmt.Fprintln(env.Stderr, allowed(parse.Context))
	}
	var failed coded
	switch {
	case errors.As(err, &failed):
		return failed.code
	case errors.As(err, new(problem.List)), errors.As(err, new(Mistakes)):
		return Misused
	}
	return Failed
}

// misused is the exit code for a command line that cannot be parsed. A command with a method Misused has its own.
func misused(err error) int {
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context.Selected() != nil {
		if own, ok := parse.Context.Selected().Target.Interface().(interface{ Misused() int }); ok {
			return own.Misused()
		}
	}
	return Misused
}

// namedCommand returns the command that the arguments name, without its last part if that is wrong: at least the program itself.
func namedCommand(ctx *kong.Context) *kong.Node {
	node := ctx.Model.Node
	for _, p := range ctx.Path {
		if p.Command != nil {
			node = p.Command
		}
	}
	return node
}

func allowed(ctx *kong.Context) string {
	node := namedCommand(ctx)
	switch {
	case node == ctx.Model.Node:
		return fmt.Sprintf("Commands: %s.\nMore: lull help", strings.Join(children(node), ", "))
	case len(node.Children) > 0:
		return fmt.Sprintf("Commands of %s: %s.\nMore: lull help %[1]s", node.Path(), strings.Join(children(node), ", "))
	}
	names := choice.Each(ctx.Flags(), func(f *kong.Flag) string { return "--" + f.Name })
	return fmt.Sprintf("Flags of %s: %s.\nMore: lull help %[1]s", node.Path(), strings.Join(names, ", "))
}

func children(n *kong.Node) []string {
	return choice.Each(n.Children, func(c *kong.Node) string { return c.Name })
}

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

// ModuleVersion returns the version of this build, or "" if it has none.
func ModuleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return ""
}

// Version returns what lull version prints: what the Go tool knows of this build.
func Version() string {
	version, revision := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	return fmt.Sprintf("lull %s%s %s %s/%s", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
