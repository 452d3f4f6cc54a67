// Command lull shows what retries do to a service that has fallen over, and
// what they need not do.
//
//	lull demo
//
// runs it on real sockets, side by side, and
//
//	lull simulate
//
// in virtual time, at any size.
//
//	lull lint
//
// says what is wrong with a policy before an outage does,
//
//	lull convert
//
// turns those of other systems into lull's and back, and
//
//	lull queue
//
// looks after the dead letters of a real broker.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/internal/problem"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// commands is the command line. Each command has a Run method.
type commands struct {
	Demo     demoFlags     `cmd:"" help:"Watch a retry storm happen, and not happen, on real sockets."`
	Simulate simulateFlags `cmd:"" help:"Fly retry policies through an outage in virtual time, side by side."`
	Lint     lintFlags     `cmd:"" help:"Check policies and call graphs."`
	Convert  convertFlags  `cmd:"" help:"Turn retry configs of gRPC, Istio, Envoy and the Gateway API into policies, and back."`
	Queue    queueCommands `cmd:"" help:"Look at the dead letters of a queue, and put them back."`
	Version  versionFlags  `cmd:"" help:"Print the version."`
	Help     helpFlags     `cmd:"" help:"Show this, or the help of a command."`
}

// helpFlags are there to be listed; program turns help into --help.
type helpFlags struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// surroundings are what a command may use of the process it runs in.
type surroundings struct {
	ctx            context.Context // ends when the user has had enough
	stdout, stderr io.Writer
	getenv         func(string) string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(program(surroundings{ctx: ctx, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}, os.Args[1:]))
}

// program does what the arguments say and returns the exit code.
func program(env surroundings, args []string) int {
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	helped := false
	parser, err := kong.New(&commands{},
		kong.Name("lull"),
		kong.Description("lull makes calls to things that fail, without making the failure worse."),
		kong.Writers(env.stdout, env.stderr),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 80}),
	)
	if err != nil {
		return complain(env, exitError, err)
	}
	parsed, err := parser.Parse(args)
	if helped {
		return exitOK
	}
	if err != nil {
		return complain(env, exitUsage, err)
	}
	err = parsed.Run(env)
	var wrong problem.List
	var failed failure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &wrong):
		return complain(env, exitUsage, err)
	case errors.As(err, &failed):
		return complain(env, failed.code, err)
	}
	return complain(env, exitError, err)
}

// complain says what went wrong and, of what was typed, what is allowed.
func complain(env surroundings, code int, err error) int {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(env.stderr, "lull: %s\n", strings.TrimSpace(line))
	}
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		fmt.Fprintln(env.stderr, allowed(parse.Context))
	}
	return code
}

// allowed lists the commands, or the flags of the command that was named.
func allowed(ctx *kong.Context) string {
	node := ctx.Selected()
	if node == nil {
		for _, p := range ctx.Path { // a command whose own was not named
			if p.Command != nil {
				node = p.Command
			}
		}
	}
	var names []string
	switch {
	case node == nil:
		return fmt.Sprintf("Commands: %s. More: lull help", strings.Join(children(ctx.Model.Node), ", "))
	case len(node.Children) > 0:
		name := path(node)
		return fmt.Sprintf("Commands of %s: %s.\nMore: lull help %s", name, strings.Join(children(node), ", "), name)
	}
	for _, f := range ctx.Flags() {
		names = append(names, "--"+f.Name)
	}
	return fmt.Sprintf("Flags of %s: %s.\nMore: lull help %[1]s", path(node), strings.Join(names, ", "))
}

func children(n *kong.Node) (names []string) {
	for _, c := range n.Children {
		names = append(names, c.Name)
	}
	return names
}

// path is a command as it is typed.
func path(n *kong.Node) string {
	if n.Parent == nil || n.Parent.Type == kong.ApplicationNode {
		return n.Name
	}
	return path(n.Parent) + " " + n.Name
}
