#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# usage: completion.bash SCRIPT PROGRAM <OPTIONS
# Source a completion and press the tab key, so to speak: prints what is missing from the answers.
# OPTIONS are those that have to be offered, one a line.
script=$1 program=$2 tool=${2##*/}
# shellcheck source=/dev/null
source "$script"
function=$(complete -p "$tool" 2>/dev/null | sed -n 's/.* -F \([^ ]*\) .*/\1/p')
if [[ -z $function ]]; then
	echo "$tool: nothing is bound to the name"
	exit 1
fi

# offers LINE: what is offered at its end, one a line
offers() {
	COMP_LINE="$program $1" COMP_POINT=$((${#program} + 1 + ${#1}))
	COMPREPLY=()
	"$function"
	printf '%s\n' "${COMPREPLY[@]}"
}

# wanted LINE WORD...: these are offered at the end of LINE
wanted() {
	local line=$1 word answers
	answers=$(offers "$line")
	for word in "${@:2}"; do
		grep -qxF -e "$word" <<<"$answers" ||
			echo "$tool $line<tab> does not offer $word, but: ${answers//$'\n'/ }"
	done
}

# only LINE WORD...: these and no others
only() {
	local answers expected
	answers=$(offers "$1" | sort)
	expected=$(printf '%s\n' "${@:2}" | sort)
	[[ $answers == "$expected" ]] ||
		echo "$tool $1<tab> offers ${answers//$'\n'/ }, not ${expected//$'\n'/ }"
}

mapfile -t options
only - "${options[@]}"
for option in "${options[@]}"; do
	[[ $option != --* ]] || wanted "${option%?}" "$option"
done
value='ofi:tcp loop'
case $tool in
ndx-info | ndx-conformance | ndx-perf-compare | ndx-torture | ndx-connect)
	# shellcheck disable=SC2086 # a list
	wanted '' $value
	wanted 'loop l' loop
	wanted "'ofi:t" ofi:tcp # in quotes a word has its colon
	;;
ndx-perf | ndx-recv | ndx-send | ndx-reqresp | ndx-negotiate)
	# shellcheck disable=SC2086 # a list
	wanted '--adapter ' $value
	wanted '--adapter=lo' loop
	wanted '--verbose --adapter lo' loop
	wanted '--adapter ofi:t' tcp # what stands behind the colon is a word of its own
	;;
esac
case $tool in
ndx-info)
	only '--verbose --root /nonexist' ''
	wanted '' history
	only 'his' history
	wanted 'history /de' /dev
	wanted 'history /dev/null /de' /dev
	only 'history lo' ''
	wanted 'history x --svg=/de' /dev
	;;
ndx-perf-compare)
	only '--tests ' latency stream write
	only '--tests latency,s' latency,stream
	only '--modes=' spin wait passive
	only '--beside tcp,u' tcp,ucx
	only '--blocks ' ''
	;;
ndx-perf)
	only '' server client compare
	only '--test ' latency bandwidth
	only '--op write-imm,r' write-imm,read
	wanted '--plot /de' /dev
	only '--size ' ''
	;;
ndx-conformance)
	wanted '--filter dat' data.sends_of_all_sizes
	wanted 'loop --filter conn' connection.bind_chooses_a_port
	only 'loop --json /nonexist' ''
	;;
ndx-reqresp | ndx-negotiate)
	only '' server client both
	only '--timeout 5 --verbose cl' client
	only 'client ' ''
	;;
ndx-guest)
	wanted '-- bas' bash
	wanted '-o /de' /dev
	only '-c ' ''
	;;
ndx-decode) wanted '-i l' lo ;;
ndx-recv) wanted '--file /de' /dev ;;
esac
exit 0
