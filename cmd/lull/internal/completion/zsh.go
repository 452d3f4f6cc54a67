package completion

import (
	"fmt"
	"strings"
)

// zsh writes the script for zsh: a function that is loaded by its name, _lull.
func zsh(b *strings.Builder, commands []command) {
	b.WriteString(`#compdef lull
# zsh completion of lull, printed by: lull completion zsh
_lull() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \
`)
	for _, f := range commands[0].flags {
		b.WriteString("    " + f.zsh() + " \\\n")
	}
	b.WriteString("    '1: :->command' \\\n    '*:: :->arguments'\n  case $state in\n    command)\n      local -a commands=(\n")
	for _, c := range commands[1:] {
		fmt.Fprintf(b, "        %s\n", quote(c.name+":"+c.help))
	}
	b.WriteString("      )\n      _describe command commands ;;\n    arguments)\n      case $words[1] in\n")
	for _, c := range commands[1:] {
		fmt.Fprintf(b, "        %s)\n          _arguments -S \\\n", c.name)
		for _, f := range c.flags {
			b.WriteString("            " + f.zsh() + " \\\n")
		}
		b.WriteString("            " + c.zshArguments() + " ;;\n")
	}
	b.WriteString(`      esac ;;
  esac
}
if [[ $funcstack[1] == _lull ]]; then
  _lull "$@"
else
  compdef _lull lull
fi
`)
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
