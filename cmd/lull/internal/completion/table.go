package completion

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A completer is a command that knows values of its flags and arguments. They are by name, without
// dashes.
type completer interface{ Complete() map[string][]string }

// A command is what the scripts need of one. It has either commands or arguments.
type command struct {
	path     []string // as it is typed, without lull
	help     string
	commands []command
	flags    []flag
	values   []string // of its arguments
	files    bool     // its arguments are files, or begin with one
	programs bool     // its arguments are a command and that one's own
}

// name returns the last word of the path.
func (c command) name() string { return c.path[len(c.path)-1] }

// names returns the names of the commands of c.
func (c command) names() (all []string) {
	for _, below := range c.commands {
		all = append(all, below.name())
	}
	return all
}

// A flag is an option of a command.
type flag struct {
	name, help  string
	short       string // empty: there is none
	takes       bool   // a value follows
	placeholder string
	values      []string // empty: anything
	files       bool     // the value is a file
}

// commandOf returns the command of n and all below it.
func commandOf(n *kong.Node, path []string) command {
	values := valuesOf(n)
	c := command{path: path, help: n.Help, flags: flagsOf(n, values)}
	if len(path) == 0 {
		c.flags = append(c.flags, flag{name: "version", help: "Print the version."})
	}
	for _, below := range n.Children {
		if !below.Hidden {
			c.commands = append(c.commands, commandOf(below, append(slices.Clip(path), below.Name)))
		}
	}
	for _, p := range n.Positional {
		c.values = append(c.values, values[p.Name]...)
		c.programs = c.programs || p.Passthrough
		c.files = c.files || p.Name == "file" || p.Name == "scenario"
	}
	return c
}

// valuesOf returns the values that a command knows. Those with blanks are left out: nobody types
// them without quotes.
func valuesOf(n *kong.Node) map[string][]string {
	c, ok := n.Target.Interface().(completer)
	if !ok {
		return nil
	}
	values := c.Complete()
	for name, all := range values {
		values[name] = slices.DeleteFunc(slices.Clone(all), func(v string) bool { return strings.Contains(v, " ") })
	}
	return values
}

func flagsOf(n *kong.Node, values map[string][]string) (all []flag) {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			one := flag{name: f.Name, help: f.Help, takes: !f.IsBool(), placeholder: f.PlaceHolder, values: values[f.Name]}
			if f.Short != 0 {
				one.short = string(f.Short)
			}
			one.files = one.takes && f.PlaceHolder == "FILE" || f.Name == "policy"
			all = append(all, one)
		}
	}
	return all
}
