package completion

import (
	"fmt"
	"strings"
)

// bash writes the script for bash. It needs nothing of the package bash-completion.
func bash(b *strings.Builder, root command) {
	b.WriteString(`# bash completion of lull, printed by: lull completion bash
_lull() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' words='' files='' list='' i
  COMPREPLY=()
  # Bash takes --flag=value apart into three words.
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $prev == = && $COMP_CWORD -gt 1 ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -* ]] && continue
    command=${command:+$command }${COMP_WORDS[i]}
    case $command in
`)
	for _, c := range root.commands {
		if len(c.commands) > 0 {
			fmt.Fprintf(b, "      %s) ;; # a command of it follows\n", c.name())
		}
	}
	b.WriteString(`      *) break ;;
    esac
  done
  case $command in
`)
	bashCommand(b, root)
	b.WriteString(`    *) return ;;
  esac
  # Several values stand between commas.
  [[ -n $list && $cur == *,* ]] && list=${cur%,*}, || list=''
  [[ -n $words ]] && COMPREPLY=($(compgen -P "$list" -W "$words" -- "${cur#"$list"}"))
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    local IFS=$'\n'
    COMPREPLY+=($(compgen -P "$list" -f -- "${cur#"$list"}"))
  fi
}
complete -F _lull lull
`)
}

// bashCommand writes the part for one command, and then those of its commands: what follows a flag, or else flags
// and arguments.
func bashCommand(b *strings.Builder, c command) {
	fmt.Fprintf(b, "    %s)\n", quote(strings.Join(c.path, " ")))
	if c.programs {
		b.WriteString(`      for ((i++; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
          ((i == COMP_CWORD - 1)) && COMPREPLY=($(compgen -c -- "$cur")) || COMPREPLY=($(compgen -f -- "$cur"))
          return
        fi
      done
`)
	}
	b.WriteString("      case $prev in\n")
	var free []string
	for _, f := range c.flags {
		switch {
		case !f.takes:
		case len(f.values) > 0 || f.files:
			fmt.Fprintf(b, "        %s) list=yes%s%s ;;\n", f.pattern(), bashWords(f.values), bashFiles(f.files))
		default:
			free = append(free, f.pattern())
		}
	}
	if len(free) > 0 {
		fmt.Fprintf(b, "        %s) return ;;\n", strings.Join(free, "|"))
	}
	var flags []string
	for _, f := range c.flags {
		flags = append(flags, "--"+f.name)
	}
	fmt.Fprintf(b, "        *)\n          if [[ $cur == -* ]]; then words='%s'\n", strings.Join(flags, " "))
	if rest := bashWords(append(c.names(), c.values...)) + bashFiles(c.files); rest != "" {
		fmt.Fprintf(b, "          else %s\n", strings.TrimSpace(rest))
	}
	b.WriteString("          fi ;;\n      esac ;;\n")
	for _, below := range c.commands {
		bashCommand(b, below)
	}
}

// pattern matches the flag as it is typed.
func (f flag) pattern() string {
	if f.short != "" {
		return "--" + f.name + "|-" + f.short
	}
	return "--" + f.name
}

func bashWords(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return " words='" + strings.Join(values, " ") + "'"
}

func bashFiles(files bool) string {
	if files {
		return " files=yes"
	}
	return ""
}
