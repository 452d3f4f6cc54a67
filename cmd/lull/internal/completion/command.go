// Package completion is the command lull completion. It prints a script that completes the command line of lull in a
// shell. The scripts ask the program itself (Offer), so that they fit it.
package completion

import (
	"bufio"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/problem"
)

// Command is lull completion.
type Command struct {
	Shell cli.Text `arg:"" help:"bash, zsh or fish."`
}

var shells = []string{"bash", "zsh", "fish"}

func (Command) Help() string {
	return `Prints a script that completes commands, flags and their values in a shell.

  lull completion bash > ~/.local/share/bash-completion/completions/lull
  lull completion zsh > ~/.zfunc/_lull
  lull completion fish > ~/.config/fish/completions/lull.fish

For zsh the folder must be in fpath: fpath+=(~/.zfunc) before compinit in
~/.zshrc. For bash the package bash-completion must be installed; without it,
put this into ~/.bashrc: source <(lull completion bash)`
}

func (Command) Complete() map[string][]string {
	return map[string][]string{"shell": shells}
}

func (f Command) Check() error {
	var l problem.List
	l.Check(slices.Contains(shells, string(f.Shell)), "SHELL", f.Shell.Quoted(), "bash, zsh or fish")
	return l.Err()
}

func (f Command) Run(env cli.Env) error {
	if err := f.Check(); err != nil {
		return err
	}
	script, err := scripts.ReadFile("lull." + string(f.Shell))
	if err == nil {
		_, err = env.Stdout.Write(script)
	}
	return err
}

// scripts has a script for each shell. Bash needs nothing of the package bash-completion. Zsh loads its function by the name, _lull.
//
//go:embed lull.bash lull.zsh lull.fish
var scripts embed.FS

// A completer is a command that knows values of its flags and arguments. They are by name, without dashes.
type completer interface{ Complete() map[string][]string }

// Offer prints what may stand in place of the last of the words that follow lull, in a line each: the word, a tab, and
// what it means. These lines are for the shell:
//
//	:filesBEFORE  files too; the part BEFORE of the word is none of the name
//	:programN     nothing but another program and its arguments, from the Nth word on
func Offer(out io.Writer, root *kong.Node, words []string) error {
	if len(words) == 0 {
		return nil
	}
	o := offering{out: bufio.NewWriter(out), node: root, wordsBefore: words[:len(words)-1], word: words[len(words)-1]}
	if start, ok := o.findCommand(); ok {
		o.offer(start)
	}
	return o.out.Flush()
}

type offering struct {
	out         *bufio.Writer
	node        *kong.Node // the command
	wordsBefore []string   // words
	prefix      string     // a part of the word that stays, with the comma or the equals sign at its end
	word        string     // the rest of it
}

func (o *offering) findCommand() (start int, ok bool) {
	for i, w := range o.wordsBefore {
		if strings.HasPrefix(w, "-") || len(o.node.Children) == 0 {
			continue
		}
		below := slices.IndexFunc(o.node.Children, func(n *kong.Node) bool { return n.Name == w })
		if below < 0 {
			return 0, false
		}
		o.node, start = o.node.Children[below], i+1
	}
	return start, true
}

func (o *offering) offer(start int) {
	previous := ""
	if len(o.wordsBefore) > 0 {
		previous = o.wordsBefore[len(o.wordsBefore)-1]
	}
	name, value, joined := strings.Cut(o.word, "=")
	switch { // Bash takes --flag=value apart into three words
	case o.word == "=":
		o.word = ""
	case previous == "=":
		previous = o.wordsBefore[max(0, len(o.wordsBefore)-2)]
	case joined && strings.HasPrefix(o.word, "-"):
		previous, o.prefix, o.word = name, name+"=", value
	}
	var values map[string][]string
	if c, ok := o.node.Target.Interface().(completer); ok {
		values = c.Complete()
	}
	if f := o.flagTyped(previous); f != nil && !f.IsBool() {
		cut := strings.LastIndexByte(o.word, ',') + 1 // several values stand between commas
		o.prefix, o.word = o.prefix+o.word[:cut], o.word[cut:]
		o.printValues(values[f.Name], f.PlaceHolder == "FILE" || f.Name == "policy")
		return
	}
	if at := o.programIndex(start); at >= 0 {
		fmt.Fprintf(o.out, ":program%d\n", at+1)
		return
	}
	if strings.HasPrefix(o.word, "-") {
		for _, f := range o.flags() {
			if o.word == "-" && f.Short != 0 {
				o.printIfPrefixed("-"+string(f.Short), f.Help)
			}
			o.printIfPrefixed("--"+f.Name, f.Help)
		}
		if o.node.Type == kong.ApplicationNode {
			o.printIfPrefixed("--version", "Print the version.")
		}
		return
	}
	for _, n := range o.node.Children {
		o.printIfPrefixed(n.Name, n.Help)
	}
	for _, p := range o.node.Positional {
		o.printValues(values[p.Name], p.Name == "file" || p.Name == "scenario")
	}
}

func (o *offering) flags() []*kong.Flag { return slices.Concat(o.node.AllFlags(true)...) }

func (o *offering) flagTyped(typed string) *kong.Flag {
	for _, f := range o.flags() {
		if typed == "--"+f.Name || f.Short != 0 && typed == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

// programIndex returns the index of the word that is another program, if that one or its arguments are typed, else -1.
func (o *offering) programIndex(start int) int {
	if !slices.ContainsFunc(o.node.Positional, func(p *kong.Positional) bool { return p.Passthrough }) {
		return -1
	}
	words := append(slices.Clip(o.wordsBefore), o.word)
	for i := start; i < len(words); i++ {
		f := o.flagTyped(words[i])
		switch {
		case words[i] == "--" && i+1 < len(words):
			return i + 1
		case f != nil && !f.IsBool():
			i++ // its value
		case !strings.HasPrefix(words[i], "-"):
			return i
		}
	}
	return -1
}

// printValues leaves out those with blanks: nobody types them without quotes.
func (o *offering) printValues(all []string, files bool) {
	for _, v := range all {
		if !strings.Contains(v, " ") {
			o.printIfPrefixed(v, "")
		}
	}
	if files {
		fmt.Fprintf(o.out, ":files%s\n", o.prefix)
	}
}

func (o *offering) printIfPrefixed(word, help string) {
	if strings.HasPrefix(word, o.word) {
		fmt.Fprintln(o.out, strings.TrimSuffix(o.prefix+word+"\t"+help, "\t"))
	}
}
