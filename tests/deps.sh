# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# The Debian packages that NDX needs, in one place. To be sourced; then: deps_install $deps_build

# To build the library, its tools and the samples.
deps_build='gcc make cmake pkg-config libfabric-dev libibverbs-dev librdmacm-dev libinih-dev libjansson-dev libpcap-dev zlib1g-dev libssl-dev python3'
# To run tests/run.sh.
# shellcheck disable=SC2034 # for whoever sources this
deps_test="$deps_build g++ git libcmocka-dev patch python3-dev python3-yaml python3-pytest python3-numpy python3-pandas python3-matplotlib python3-pip python3-setuptools python3-wheel python3-venv python3-dbg mypy spin clang-format clang-tidy codespell shellcheck iproute2 groff-base man-db jq valgrind openssl abigail-tools dpkg-dev lintian"
# For the figures of docs/performance.md (tests/bench/run.sh). Debian does not have UCX on every
# architecture: the ordinary tests use it where it can be had, and skip what needs it elsewhere.
deps_ucx='libucx-dev'
# shellcheck disable=SC2034
deps_bench="$deps_build jq gnuplot-nox valgrind $deps_ucx"
# Beside what tests/bench/hosts.sh measures. Its test is skipped where they cannot be had.
# shellcheck disable=SC2034
deps_hosts='iperf3 ucx-utils'
# For the packages in a root of Debian's mirror (tests/packaging/run.sh --long).
# shellcheck disable=SC2034
deps_long='mmdebstrap'
# For the guest with software RoCE (tests/vm/run.sh), which is skipped where they cannot be had.
# shellcheck disable=SC2034
deps_vm='qemu-system-x86 busybox-static cpio kmod iproute2 ibverbs-providers rdmacm-utils xz-utils'

# deps_missing PACKAGE...: those that are not installed
deps_missing() {
	for package; do
		case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
		*' installed') ;;
		*) printf '%s ' "$package" ;;
		esac
	done
}

# deps_install PACKAGE...: install what is missing, or say how and return 1
deps_install() {
	if ! command -v dpkg-query >/dev/null; then
		echo "not a Debian: if the build misses something, the packages there are: $*" >&2
		return 0
	fi
	deps_wanted=$(deps_missing "$@")
	[ -n "$deps_wanted" ] || return 0
	deps_root=
	if [ "$(id -u)" -ne 0 ]; then
		deps_root='sudo -n'
		if ! sudo -n true 2>/dev/null; then
			echo "missing packages, and no right to install them. Run this first:" >&2
			echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $deps_wanted" >&2
			return 1
		fi
	fi
	echo "installing: $deps_wanted"
	# shellcheck disable=SC2086 # both are lists
	$deps_root apt-get update -q && $deps_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -q --no-install-recommends $deps_wanted
}
