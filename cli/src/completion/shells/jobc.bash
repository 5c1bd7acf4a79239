# Completions of COMMAND: the program itself answers with what fits.
_COMMAND() {
    # Bash ends words at `:` and `=`. Those without a blank between them are put together.
    local line=${COMP_LINE:0:COMP_POINT} words=() word last=-1 i
    for ((i = 0; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((last < 0)) || [[ $line == [[:blank:]]* ]]; then
            last=$((last + 1))
            words[last]=$word
        else
            words[last]+=$word
        fi
        line=${line#"${line%%[![:blank:]]*}"}
        line=${line#"$word"}
    done
    word=${line#"${line%%[![:blank:]]*}"}
    if [[ -z $line || $line == [[:blank:]]* ]]; then
        last=$((last + 1))
        words[last]=$word
    else
        words[last]+=$word
    fi
    word=${words[last]}

    local IFS=$'\n'
    COMPREPLY=($(_CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$last VARIABLE=bash PROGRAM -- "${words[@]}" 2>/dev/null))
    # What is before the last `:` or `=` stays on the line.
    local before=${word%"${word##*[:=]}"}
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=${COMPREPLY[i]#"$before"}
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o nosort -F _COMMAND COMMAND 2>/dev/null || complete -o bashdefault -F _COMMAND COMMAND
