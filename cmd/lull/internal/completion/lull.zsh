#compdef lull
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
