// Package command is the command lull proxy.
package command

import (
	"errors"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/cmd/lull/internal/proxy"
)

// Command is lull proxy.
type Command struct {
	File    string `arg:"" optional:"" name:"file" help:"The file with the doors and policies. The word demo: show a client before and after the proxy (a file of that name is ./demo)."`
	To      string `placeholder:"URL" help:"Without a file: one door that leads to this address, with the recommended policy."`
	Listen  string `placeholder:"ADDRESS" help:"The address of that door. Default: 127.0.0.1:9001."`
	Replace bool   `help:"Take the place of another lull proxy: listen at its addresses, and get its new connections when it ends."`
	Check   bool   `help:"Print what the file means, or all mistakes in it, and exit."`
}

func (Command) Help() string {
	return `Stands between programs in any language and the services that they call, and
makes their calls under policies: retries with a budget, circuit breakers,
deadlines, hedges. Programs send their requests to it instead of to the service:

  lull proxy --to https://api.example.com
  curl http://127.0.0.1:9001/orders/7

This shows a client before and after the proxy, in some 20 seconds:

  lull proxy demo

A file has any number of doors, and the policies (lull help policies):

  upstreams:
    payments:
      listen: 127.0.0.1:9001
      to: [https://payments.example]
  admin: {listen: 127.0.0.1:9900}
  dependencies:
    payments: {attempts: 3}

  lull proxy --check proxy.yaml
  lull proxy proxy.yaml

A file that changes is read again, at once upon SIGHUP. One with mistakes changes
nothing; they are printed. SIGTERM and SIGINT end the proxy when all requests in
flight have been answered, or after the time under drain; a second signal ends it
at once. The admin address has a page with the state of all dependencies, and
/metrics, /health, /ready, POST /drain and POST /reload.

Exit codes: 0 all requests have been answered, 1 the proxy failed, 2 the file or
the command line is wrong.`
}

func (c Command) Run(env cli.Env) error {
	if c.File == "demo" {
		return runDemo(env)
	}
	code := proxy.Program{File: c.File, To: c.To, Listen: c.Listen, Check: c.Check, Replace: c.Replace, Stdout: env.Stdout, Stderr: env.Stderr, Getenv: env.Getenv}.Run(env.Context)
	if code == cli.OK {
		return nil
	}
	return cli.Fail(code, errors.New("")) // it has been said
}
