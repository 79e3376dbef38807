#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: recipe.sh SOURCE JOB
# The commands of docs/ci, as they stand there, in a project of their own: job guest or tcp. Packages
# are not installed, but each has to be one that apt knows; NDX comes from a repository made of SOURCE.
set -u
src=$1 job=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
skip() {
	echo "skip: $*"
	exit 77
}

for tool in python3 git apt-cache cmake pkg-config; do
	command -v $tool >/dev/null || skip "$tool is missing"
done
mkdir "$tmp/steps" "$tmp/bin" "$tmp/project" "$tmp/origin" "$tmp/project/.cache"
python3 "$src/tests/vm/recipe.py" "$src/docs" "$tmp/steps" || exit

# NDX, as git finds it
(cd "$src" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$tmp/origin"
(cd "$tmp/origin" && git init -q . && git add -A &&
	git -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false commit -q -m NDX) || exit 1

# shellcheck disable=SC2016 # the variables are the script's
cat >"$tmp/bin/apt-get" <<'END'
#!/bin/sh
# Stands for apt-get: installs nothing, but knows which packages there are.
case $1 in
update) exit 0 ;;
install) shift ;;
*) PATH=${PATH#*:} exec apt-get "$@" ;;
esac
for package; do
	case $package in
	-*) continue ;;
	esac
	echo "$package" >>"$ASKED_FOR"
	apt-cache show "$package" >/dev/null 2>&1 || dpkg-query -W "$package" >/dev/null 2>&1 || {
		echo "E: Unable to locate package $package"
		exit 100
	}
done
END
chmod +x "$tmp/bin/apt-get"

project=$tmp/project
cp "$src"/docs/ci/*.c "$project/"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ndx-vm
[ ! -d "$cache" ] || ln -s "$cache" "$project/.cache/ndx-vm"
PATH=$tmp/bin:$PATH NDX_URL=$tmp/origin ASKED_FOR=$tmp/packages
CCACHE_BASEDIR=$tmp CCACHE_NOHASHDIR=1
export PATH NDX_URL ASKED_FOR CCACHE_BASEDIR CCACHE_NOHASHDIR
# The recipe has to build, not to be fast: the optimiser takes half of the time.
CMAKE_BUILD_TYPE=Debug
# It installs no g++: what is written in C++ has to be left out without harm.
CXX=$tmp/bin/no-c++
export CMAKE_BUILD_TYPE CXX
unset XDG_CACHE_HOME NDX_ADAPTER NDX_CONFIG
for step in "$tmp/steps/$job".*.sh; do
	(cd "$project" && sh -e "$step") >"$tmp/out" 2>&1
	ended=$?
	[ $ended -ne 77 ] || ! grep -q '^skip: ' "$tmp/out" || skip "$(sed -n 's/^skip: //p' "$tmp/out")"
	if [ $ended -ne 0 ]; then
		tail -n 40 "$tmp/out"
		echo "   ^ job $job, $(basename "$step"): ended with $ended"
		exit 1
	fi
done
case $job in
guest) wanted='64 bytes arrived' ;;
tcp) wanted='a message arrived' ;;
esac
if ! tr -d '\r' <"$tmp/out" | grep -qx "$wanted"; then
	cat "$tmp/out"
	echo "   ^ job $job: not '$wanted'"
	exit 1
fi
# All that ndx-guest asks for is installed by the recipe, but for what every Debian has.
if [ "$job" = guest ]; then
	sed -n 's/^need [^ ]* //p; s/^\(\t\|.*|| \)lacks .* \([a-z0-9-]*\)$/\2/p' "$src/tests/vm/guest/ndx-guest" |
		grep -vxE 'dpkg|util-linux|libgcc-s1' | sort -u >"$tmp/needed"
	sort -u "$tmp/packages" | comm -13 - "$tmp/needed" >"$tmp/forgotten"
	if [ ! -s "$tmp/needed" ] || [ -s "$tmp/forgotten" ]; then
		sed 's/^/the recipe does not install what ndx-guest needs: /' "$tmp/forgotten"
		exit 1
	fi
fi
echo "job $job: $(cat "$tmp/steps/$job".*.sh | wc -l) commands, $wanted"
