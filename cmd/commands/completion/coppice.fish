# fish completion of coppice: coppice completion fish | source
function __coppice_complete
	set -l words (commandline -opc)
	set -e words[1]
	set -l current (commandline -ct)
	set -l found (coppice __complete -- $words "$current" 2> /dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
	else
		__fish_complete_path "$current"
	end
end
complete -c coppice -f -a '(__coppice_complete)'
