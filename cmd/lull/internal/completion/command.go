// Package completion is the command lull completion. It prints a script that completes the command line of lull in a
// shell. The scripts ask the program itself (Offer), so that they fit it.
package completion

import (
	"io"

	"github.com/lullgo/lull/cmd/lull/internal/cli"
	"github.com/lullgo/lull/internal/problem"
)

// Command is lull completion.
type Command struct {
	Shell cli.Text `arg:"" help:"bash, zsh or fish."`
}

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
	return map[string][]string{"shell": {"bash", "zsh", "fish"}}
}

func (f Command) Check() error {
	var l problem.List
	l.Check(scripts[string(f.Shell)] != "", "SHELL", f.Shell.Quoted(), "bash, zsh or fish")
	return l.Err()
}

func (f Command) Run(env cli.Env) error {
	if err := f.Check(); err != nil {
		return err
	}
	_, err := io.WriteString(env.Stdout, scripts[string(f.Shell)])
	return err
}

// scripts are by shell. Bash needs nothing of the package bash-completion. Zsh loads its function by the name, _lull.
var scripts = map[string]string{
	"bash": `# bash completion of lull, printed by: lull completion bash
_lull() {
  local IFS=$'\n' cur=${COMP_WORDS[COMP_CWORD]} line before
  [[ $cur == = ]] && cur=''
  COMPREPLY=()
  for line in $("${COMP_WORDS[0]}" --offer "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
    case $line in
      :files*)
        before=${line#:files}
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -P "$before" -f -- "${cur#"$before"}")) ;;
      :program*) [[ ${line#:program} == "$COMP_CWORD" ]] && COMPREPLY=($(compgen -c -- "$cur")) || COMPREPLY=($(compgen -f -- "$cur")) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done
}
complete -F _lull lull
`,
	"zsh": `#compdef lull
# zsh completion of lull, printed by: lull completion zsh
_lull() {
  local line files
  local -a offers
  for line in "${(@f)$("${words[1]}" --offer "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      :files*) files=$line ;;
      :program*)
        words=("${(@)words[${line#:program}+1,-1]}")
        (( CURRENT -= ${line#:program} ))
        _normal ;;
      ?*) offers+=("${${line//:/\\:}/$'\t'/:}") ;;
    esac
  done
  (( $#offers )) && _describe ${offers[(r)-*]:+-o} lull offers
  [[ -n $files ]] && compset -P "${(b)files#:files}" && _files
}
if [[ $funcstack[1] == _lull ]]; then
  _lull "$@"
else
  compdef _lull lull
fi
`,
	"fish": `# fish completion of lull, printed by: lull completion fish
function __lull_offer --description 'Print what lull offers in place of the word that is being typed'
    set -l word (commandline -ct)
    set -l words (commandline -poc) "$word"
    for line in ($words[1] --offer $words[2..-1] 2>/dev/null)
        switch $line
            case ':files*'
                set -l before (string sub -s 7 -- $line)
                string replace -r '^' -- "$before" (complete -C "'' "(string sub -s (math 1 + (string length -- "$before")) -- "$word"))
            case ':program*'
                set -l at (math 1 + (string sub -s 9 -- $line))
                complete -C "$words[$at..-1]"
            case '*'
                echo $line
        end
    end
end
complete -c lull -f -a '(__lull_offer)'
`,
}
