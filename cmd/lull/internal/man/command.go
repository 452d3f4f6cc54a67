// Package man is the command lull man. It prints the manual page of lull, made from the commands and
// flags that the program has, and from the pages of lull help TOPIC.
package man

import (
	"io"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
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
