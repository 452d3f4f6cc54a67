# bash completion of lull, printed by: lull completion bash
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
