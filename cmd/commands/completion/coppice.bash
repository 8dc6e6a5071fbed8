# bash completion of coppice: source <(coppice completion bash)
_coppice() {
	local line="${COMP_LINE:0:COMP_POINT}" words word
	read -ra words <<< "$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	word="${words[${#words[@]} - 1]}"
	local IFS=$'\n'
	COMPREPLY=($("$1" __complete -- "${words[@]:1}" 2> /dev/null | cut -f 1))
	# bash replaces only what stands behind the last = of a word.
	if [[ $word == *=* && $COMP_WORDBREAKS == *=* ]]; then
		COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*=}"}"}")
	fi
	if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then
		compopt -o nospace 2> /dev/null
	fi
}
complete -o default -F _coppice coppice
