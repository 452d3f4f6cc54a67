// Package completion is the command lull completion. It prints a script that completes the
// command line of lull in a shell. The scripts are made from the commands and flags that the program
// has, so that they fit it.
package completion

import (
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/problem"
)

// Command is lull completion.
type Command struct {
	Shell cli.Text `arg:"" help:"bash, zsh or fish."`
}

// Help is shown above the flags.
func (Command) Help() string {
	return `Prints a script that completes commands, flags and their values in a shell.

  lull completion bash > ~/.local/share/bash-completion/completions/lull
  lull completion zsh > ~/.zfunc/_lull
  lull completion fish > ~/.config/fish/completions/lull.fish

For zsh the folder must be in fpath: fpath+=(~/.zfunc) before compinit in
~/.zshrc. For bash the package bash-completion must be installed; without it,
put this into ~/.bashrc: source <(lull completion bash)`
}

var scripts = map[string]func(*strings.Builder, command){"bash": bash, "zsh": zsh, "fish": fish}

// Complete returns the values of the argument.
func (Command) Complete() map[string][]string {
	return map[string][]string{"shell": {"bash", "zsh", "fish"}}
}

// Check returns what is wrong with the argument.
func (f Command) Check() error {
	var l problem.List
	l.Check(scripts[string(f.Shell)] != nil, "SHELL", f.Shell.Quoted(), "bash, zsh or fish")
	return l.Err()
}

// Run prints the script.
func (f Command) Run(env cli.Env, ctx *kong.Context) error {
	if err := f.Check(); err != nil {
		return err
	}
	var b strings.Builder
	scripts[string(f.Shell)](&b, commandOf(ctx.Model.Node, nil))
	_, err := io.WriteString(env.Stdout, b.String())
	return err
}
