package completion

import (
	"strings"
)

// zsh writes the script for zsh: a function that is loaded by its name, _lull.
func zsh(b *strings.Builder, root command) {
	b.WriteString(`#compdef lull
# zsh completion of lull, printed by: lull completion zsh
_lull() {
  local context state state_descr line
  typeset -A opt_args
`)
	zshCommand(b, root, "  ")
	b.WriteString(`}
if [[ $funcstack[1] == _lull ]]; then
  _lull "$@"
else
  compdef _lull lull
fi
`)
}

// zshCommand writes the lines for one command, and in them those for its commands.
func zshCommand(b *strings.Builder, c command, indent string) {
	group := len(c.commands) > 0
	lines := func(all ...string) {
		for _, line := range all {
			b.WriteString(indent + line + "\n")
		}
	}
	if group {
		lines("state=''", `_arguments -C \`)
	} else {
		lines(`_arguments -S \`)
	}
	for _, f := range c.flags {
		lines("  " + f.zsh() + ` \`)
	}
	if !group {
		lines("  " + c.zshArguments())
		return
	}
	lines("  '1: :->command' \\", "  '*:: :->arguments'", "case $state in", "  command)", "    local -a commands=(")
	for _, below := range c.commands {
		lines("      " + quote(below.name()+":"+below.help))
	}
	lines("    )", "    _describe command commands ;;", "  arguments)", "    case $words[1] in")
	for _, below := range c.commands {
		lines("      " + below.name() + ")")
		zshCommand(b, below, indent+"        ")
		lines("        ;;")
	}
	lines("    esac ;;", "esac")
}

// zsh returns what _arguments takes for a flag.
func (f flag) zsh() string {
	help := "[" + zshText(f.help) + "]"
	if !f.takes {
		return quote("--" + f.name + help)
	}
	value := ":" + zshText(f.placeholder) + ":" + zshAction(f.values, f.files)
	if len(f.values) > 0 && f.files {
		value = ":" + zshText(f.placeholder) + ":{_values -s , " + f.name + " " + strings.Join(f.values, " ") + "; _files}"
	}
	long := quote("*--" + f.name + "=" + help + value)
	if f.short != "" {
		return long + " " + quote("*-"+f.short+help+value)
	}
	return long
}

// zshArguments returns what _arguments takes for the arguments of a command.
func (c command) zshArguments() string {
	switch {
	case c.programs:
		return "'(-)1:command:_command_names -e' '*::argument:_normal'"
	case len(c.values) > 0 && c.files:
		return quote("*: :{compadd " + strings.Join(c.values, " ") + "; _files}")
	case len(c.values) > 0 || c.files:
		return quote("*: :" + zshAction(c.values, c.files))
	}
	return "'*: :'"
}

func zshAction(values []string, files bool) string {
	switch {
	case len(values) > 0:
		return "(" + strings.Join(values, " ") + ")"
	case files:
		return "_files"
	}
	return ""
}

// zshText escapes what _arguments gives a meaning to.
func zshText(text string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(text)
}

// quote makes one word of text, in bash, zsh and sh.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
