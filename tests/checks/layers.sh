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
	grep -rnE '^[[:space:]]*#[[:space:]]*include' "$1" --include='*.[ch]' --include='*.def' |
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
	[ -d "$1" ] || return 0
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
# The floors of core, from the ground: each sees those below.
below=
for floor in base async queue; do
	below="$below core/$floor"
	# shellcheck disable=SC2086 # below is a list
	allow core/$floor "$api|$spi|$system|$(own $below)" 'api, spi, the floors below and itself'
done
# shellcheck disable=SC2086
shared=$(own $below)
allow core/connection "$api|$std|$(own core/connection)" 'api and itself'
allow core "$api|$spi|$system|$(own core)|\"builtin\.h\"" 'api, spi, itself and builtin.h' \
	'core/(base|async|queue|connection)'
for room in providers/*/; do
	[ -d "$room" ] || continue
	room=${room%/}
	case $room in
	providers/ofi) mine='<rdma/(fabric|fi_[a-z_]+)\.h>|' ;;
	providers/verbs) mine='<(infiniband|rdma)/[a-z_]+\.h>|' ;;
	*) mine= ;;
	esac
	allow "$room" "$mine$api|$spi|$system|$shared|\"builtin\.h\"|$(own "$room")" \
		'api, spi, core up to core/queue, its own stack and itself'
done
allow plugins/python "<Python\.h>|$api|$system|$spi|\"support_py\.h\"|$(own plugins/python)" \
	'api, Python and itself'
allow plugins "$api|$system|$spi|$(own plugins)" 'api and itself' plugins/python
for room in shims samples tests/conformance; do
	[ -d "$room" ] && allow "$room" "$api|$system|$spi|$(own "$room")" 'api and itself'
done

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
deny 'samples tests/conformance shims' '<ndx/spi/' 'the SPI is for providers and plugins'
deny 'api core plugins shims samples tests/conformance providers/loop providers/fault' "$stack" \
	'an RDMA stack belongs to its provider'
deny 'core/connection core/negotiation core/receiver core/reassembly' '"builtin\.h"' \
	'the list of providers is for the front door'
deny 'api providers plugins shims' '<(sys/(epoll|eventfd|timerfd)|linux/[a-z_]+)\.h>' \
	'what is Linux only stays in core/base; a watch takes POLLIN of <poll.h> just as well'

# Core meets providers through one list of constants; nobody else in it names a backend or a vendor.
backends='loop|verbs|ofi|fault|rxe[0-9]*|siw'
vendors='libfabric|ibverbs|rdmacm|mellanox|mlx[45]?|nvidia|broadcom|bnxt|chelsio|irdma|efa|surf|xilinx'
if grep -rnE --include='*.[ch]' --exclude='registry.[ch]' \
	-e "\"($backends)[\":?]" -e "\"[^\"]*\\b($vendors)\\b[^\"]*\"" \
	-e 'ndx_provider_(loop|verbs|ofi|fault)' core | grep -vE ':[0-9]+:[[:space:]]*(/?\*|//)'; then
	echo "   ^ core names no backend and no vendor but in core/registry.c"
	bad=1
fi
exit $bad
