#compdef coppice
# zsh completion of coppice: source <(coppice completion zsh)
_coppice() {
	local line
	local -a found plain
	for line in "${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
		[[ -z $line ]] && continue
		line="${line//:/\\:}"
		if [[ ${line%%$'\t'*} == *= ]]; then
			plain+=("${line%%$'\t'*}")
		else
			found+=("${line/$'\t'/:}")
		fi
	done
	if (( $#plain )); then
		compadd -S '' -- $plain
	elif (( $#found )); then
		_describe coppice found
	else
		_files
	fi
}
if [[ $funcstack[1] == _coppice ]]; then
	_coppice "$@"
else
	compdef _coppice coppice
fi
