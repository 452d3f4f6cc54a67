// Command lull shows what retries do to a service that has failed, and how to retry without making the failure worse. Without
// arguments it lists its commands. Each is a package of internal; a program of its own, lull-queue, runs what needs a broker.
package main

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/battery"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/completion"
	"github.com/lullgo/lull/cmd/lull/internal/convert"
	"github.com/lullgo/lull/cmd/lull/internal/demo"
	"github.com/lullgo/lull/cmd/lull/internal/execute"
	"github.com/lullgo/lull/cmd/lull/internal/learn"
	"github.com/lullgo/lull/cmd/lull/internal/lint"
	"github.com/lullgo/lull/cmd/lull/internal/man"
	"github.com/lullgo/lull/cmd/lull/internal/probe"
	proxy "github.com/lullgo/lull/cmd/lull/internal/proxy/command"
	"github.com/lullgo/lull/cmd/lull/internal/queue"
	"github.com/lullgo/lull/cmd/lull/internal/replay"
	"github.com/lullgo/lull/cmd/lull/internal/schema"
	"github.com/lullgo/lull/cmd/lull/internal/simulate"
	"github.com/lullgo/lull/cmd/lull/internal/topic"
	"github.com/lullgo/lull/cmd/lull/internal/torture"
	"github.com/lullgo/lull/cmd/lull/internal/tune"
	"github.com/lullgo/lull/internal/choice"
	_ "github.com/lullgo/lull/lab/rivals" // policy files of the program may name other clients
)

type commands struct {
	Demo     demo.Command       `cmd:"" help:"Show six clients in an outage on real sockets: some cause a retry storm."`
	Simulate simulate.Command   `cmd:"" help:"Simulate an outage in virtual time, and compare retry policies in it."`
	Battery  battery.Command    `cmd:"" help:"Simulate a policy in some 530 worlds, and show where other policies do better."`
	Learn    learn.Command      `cmd:"" help:"Make a scenario of logs and metrics: the world in which a policy must work."`
	Tune     tune.Command       `cmd:"" help:"Look for a policy that fits a learned world better than the zero policy."`
	Replay   replay.Command     `cmd:"" help:"Replay an incident that lull learn has seen, under the policy that ran and under others."`
	Lint     lint.Command       `cmd:"" help:"Check policies and call graphs."`
	Convert  convert.Command    `cmd:"" help:"Translate retry settings of gRPC, Istio, Envoy and others into policies, and back."`
	Schema   schema.Command     `cmd:"" help:"Print the JSON Schema of policy files."`
	Proxy    proxy.Command      `cmd:"" help:"Make the calls of programs in any language under policies."`
	Exec     execute.Command    `cmd:"" help:"Run a command, and repeat it if it fails."`
	Torture  torture.Command    `cmd:"" help:"Grade HTTP clients: how they behave when a server fails."`
	Probe    probe.Command      `cmd:"" help:"Grade your HTTP server: how it behaves when clients retry."`
	Queue    queue.Commands     `cmd:"" help:"Show the dead letters of a queue, and put them back into a queue."`
	Worker   queue.Worker       `cmd:"" help:"Run parts of a simulation for other machines (simulate or battery with --workers URL)."`
	Version  version            `cmd:"" help:"Print the version, as --version does."`
	Complete completion.Command `cmd:"" name:"completion" help:"Print a completion script for bash, zsh or fish."`
	Man      man.Command        `cmd:"" help:"Print the manual page."`
	Help     help               `cmd:"" help:"Show this, the help of a command, or a topic: policies, values, files, formats, budget, breaker, jitter, reasons, exit-codes, environment."`
}

// help is only listed: program prints topics, and cli.Run turns the rest into --help.
type help struct {
	Command []string `arg:"" optional:"" help:"The command, or the topic."`
}

// Complete returns the values of the argument: commands and topics.
func (help) Complete() map[string][]string {
	var names []string
	for field := range reflect.TypeFor[commands]().Fields() {
		names = append(names, cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name)))
	}
	return map[string][]string{"command": append(names, topic.Names...)}
}

type version struct{}

func (version) Run(env cli.Env) error {
	_, err := fmt.Fprintln(env.Stdout, cli.Version())
	return err
}

func main() { cli.Main(program) }

// program runs the command that the arguments name, and returns the exit code.
func program(env cli.Env, args []string) int {
	if len(args) > 0 && args[0] == "--offer" { // a script of lull completion asks
		return cli.Exit(env, completion.Offer(env.Stdout, kong.Must(&commands{}).Model.Node, args[1:]))
	}
	asked := len(args) > 1 && args[0] == "help"
	if asked {
		if page, ok := topic.Page(strings.Join(args[1:], " ")); ok {
			_, err := fmt.Fprint(env.Stdout, page)
			return cli.Exit(env, err)
		}
	}
	code := cli.Run(env, &commands{}, args)
	if asked && code != cli.OK {
		fmt.Fprintf(env.Stderr, "Topics: %s.\n", strings.Join(topic.Names, ", "))
		if near := choice.Nearest(args[1], topic.Names); near != "" {
			fmt.Fprintf(env.Stderr, "Did you mean lull help %s?\n", near)
		}
	}
	return code
}
