#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: layers.sh SOURCE
# Rooms look only where docs say they may. The include paths already forbid most of it; this also
# catches what slips through them, and names in strings. Each "allow" is the whole list of a room.
set -eu
cd "$1"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

# includes DIR: FILE:LINE:<header> or FILE:LINE:"header" for everything DIR includes
includes() {
	grep -rnHE '^[[:space:]]*#[[:space:]]*include' "$1" --include='*.[ch]' --include='*.[ch]pp' --include='*.def' |
		sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*([<"][^>"]*[>"]).*/:\1/'
}

# own DIR...: a pattern of the headers that these have themselves
own() {
	names=$(for dir; do
		[ ! -d "$dir" ] || find "$dir" \( -name '*.h' -o -name '*.def' \)
	done | sed 's|.*/||' | sort -u | tr '\n' '|')
	printf '"([a-z_]+/)*(%s)"' "${names:-none|}none"
}

# allow DIR PATTERN WHY [EXCEPT]: whatever DIR includes matches PATTERN; EXCEPT is a pattern of
# sub-folders
allow() {
	[ -e "$1" ] || return 0
	includes "$1" | { [ -z "${4:-}" ] && cat || grep -vE "^$4/"; } |
		grep -vE ":($2)\$" >"$tmp/found" || return 0
	cat "$tmp/found"
	echo "   ^ $1 sees $3, nothing else"
	bad=1
}

api='<ndx/[a-z0-9_]+\.h>'
spi='<ndx/spi/[a-z0-9_]+\.h>'
std='<(assert|ctype|errno|inttypes|limits|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|time)\.h>'
net='<(sys/socket|sys/types|netinet/in)\.h>'
# A system header is one that belongs to no RDMA stack.
system='<(ini\.h|jansson\.h|([a-z]+/)?[a-z0-9_-]+\.h)>'
stack='<(infiniband|rdma)/'

allow api "$api|$spi|$std|$net" 'api and the C library'
# The provider kit: what the rooms share with providers.
kit="<ndx/spi/($(find api/ndx/spi -name '*.h' 2>/dev/null | sed 's|.*/||; s/\.h$//' |
	grep -vx 'provider\|plugin' | tr '\n' '|')none)\.h>"
# The floors of core, from the ground: each sees those below.
below=
floor() { # floor FOLDER [SEES]: SEES is a pattern of headers beside those
	below="$below $1"
	# shellcheck disable=SC2086 # below is a list
	allow "$1" "$api|$spi|$system|${2:+$2|}$(own $below)" 'api, spi, the floors below and itself'
}
floor core/base
floor core/async
floor core/queue
# shellcheck disable=SC2086
shared=$(own $below)
floor core/adapter '"builtin\.h"'
below="$below core/negotiation/protocol"
floor core/connection
floor core/front
floor core/negotiation
ground="$api|$spi|$std|$(own core/base)"
allow core/connection/disconnect.c "$std|\"disconnect\.(h|def)\"" 'the C library and its table'
allow core/connection/disconnect.h "$std|\"disconnect\.def\"" 'the C library and its table'
allow core/negotiation/protocol "$ground|$(own core/negotiation/protocol)" 'api, base and itself'
allow core/reassembly "$ground|$(own core/reassembly)" 'api, base and itself'
# shellcheck disable=SC2046
allow core/receiver "$api|$kit|$system|$(own core/base core/async core/receiver)" \
	'api, base, async and itself'
for room in providers/*/; do
	[ -d "$room" ] || continue
	room=${room%/}
	case $room in
	providers/loop | providers/fault) # inside libndx
		allow "$room" "$api|$spi|$system|$shared|\"builtin\.h\"|$(own "$room")" \
			'api, spi, core up to core/queue and itself'
		continue
		;;
	providers/ofi) mine='<rdma/(fabric|fi_[a-z_]+)\.h>|' ;;
	providers/verbs) mine='<(infiniband|rdma)/[a-z_]+\.h>|' ;;
	*) mine= ;;
	esac
	allow "$room" "$mine$api|$spi|$system|$(own "$room")" 'api, spi, its own stack and itself'
done
allow plugins/python "<Python\.h>|$api|$system|$spi|\"support_py\.h\"|$(own plugins/python)" \
	'api, Python and itself'
allow plugins "$api|$system|$spi|$(own plugins)" 'api and itself' plugins/python
# The headers of NetworkDirect are written as programs write them.
nd="<($(find shims/ndspi/include -name '*.h' 2>/dev/null | sed 's|.*/||; s/\.h$//' | tr '\n' '|')none)\.h>"
cxx='<(bits/stdc..\.h|[a-z_]+)>' # of the C++ library
allow shims/python "<Python\.h>|$api|$system|$(own shims/python)" 'api, Python and itself'
allow shims "$api|$system|$cxx|$nd|$(own shims)" 'api and itself' shims/python
allow samples "$api|$system|$cxx|$nd|$spi|$(own samples)" 'api and itself'
allow tests/conformance "$api|$system|$spi|\"sample_(json|options|progress|stop)\.h\"|$(own tests/conformance)" \
	'api, the command line of the tools and itself'

deny() { # deny WHERE PATTERN WHY
	# shellcheck disable=SC2086 # WHERE is a list
	if includes_of $1 | grep -E ":($2)"; then
		echo "   ^ $3"
		bad=1
	fi
}
includes_of() {
	for dir; do
		[ ! -d "$dir" ] || includes "$dir"
	done
}
deny 'api core providers plugins shims samples tests' '["<](/|[^">]*\.\./)' 'no path out of a room'
# link.h: the system has one, too
angled=$(find core providers -name '*.h' | sed 's|.*/||; s/\.h$//' | grep -vx link | sort -u | tr '\n' '|')
deny 'api core providers plugins shims samples tests' "<(${angled}base_[a-z_]*)\.h>" \
	'a header of a room is written in quotes'
deny providers/ofi '<(infiniband/[a-z_]*|rdma/rdma_[a-z]*)\.h>' 'ofi knows libfabric only'
deny providers/verbs '<rdma/(fabric|fi_[a-z_]*)\.h>' 'verbs knows libibverbs and librdmacm only'
# The headers of a library above libndx are for its own room and for programs.
for map in core/*/ndx-*.map; do
	[ -f "$map" ] || continue
	own=$(dirname "$map") library=$(basename "$map" .map)
	headers=$(sed -n 's|.*Headers: \([^*]*[^* ]\).*|\1|p' "$map" | tr ' ' '|')
	for room in core/*/ providers; do
		[ "${room%/}" = "$own" ] || deny "${room%/}" "<ndx/($headers)>" \
			"the headers of lib$library are for its room and for programs"
	done
done
programs=$(find samples -mindepth 1 -maxdepth 1 -type d ! -name provider)
deny "$programs tests/conformance shims" '<ndx/spi/' 'the SPI is for providers and plugins'
deny 'api core plugins shims samples tests/conformance providers/loop providers/fault' "$stack" \
	'an RDMA stack belongs to its provider'
deny 'api providers plugins shims' '<(sys/(epoll|eventfd|timerfd)|linux/[a-z_]+)\.h>' \
	'what is Linux only stays in core/base; a watch takes POLLIN of <poll.h> just as well'

# Core meets providers through one list of constants; no other file in it names a back end or a vendor.
backends='loop|verbs|ofi|fault|rxe[0-9]*|siw'
vendors='libfabric|ibverbs|rdmacm|mellanox|mlx[45]?|nvidia|broadcom|bnxt|chelsio|irdma|efa|surf|xilinx'
if grep -rnE --include='*.[ch]' --exclude='registry.[ch]' \
	-e "\"($backends)[\":?]" -e "\"[^\"]*\\b($vendors)\\b[^\"]*\"" \
	-e 'ndx_provider_(loop|verbs|ofi|fault)' core | grep -vE ':[0-9]+:[[:space:]]*(/?\*|//)'; then
	echo "   ^ core names no backend and no vendor but in core/adapter/registry.c"
	bad=1
fi
exit $bad
