#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: headers.sh first|appended API OUT
# Write a copy of the headers of API to OUT in which every structure with a `size` is as in version
# 0.1, without the members behind the one that its NDX_..._SIZE_0_1 names (first); or has one member
# more at its end, `appended`, as a later version may have (appended).
set -eu
kind=$1 api=$2 out=$3
rm -rf "$out"
mkdir -p "$out"
cp -R "$api/ndx" "$out/"
names=$(find "$api" -name '*.h' -exec \
	sed -n 's/.*NDX_SIZE_UP_TO(struct \([a-z_]*\), *\([a-z_]*\)).*/\1:\2/p' {} +)
for name in $names; do
	struct=${name%:*} member=${name#*:}
	header=$(grep -rl "^struct $struct {" "$api/ndx")
	header=$out/${header#"$api/"}
	awk -v kind="$kind" -v struct="$struct" -v member="$member" '
		$0 == "struct " struct " {" { inside = 1 }
		inside && $0 == "};" {
			if (kind == "appended")
				print "\tuint64_t appended;"
			if (!seen)
				exit 1
			inside = 0
		}
		!inside || kind != "first" || !seen { print }
		inside && match($0, "[ *(]" member "[];[)(]") { seen = 1 }
		END { exit !seen }' "$header" >"$out/new" || {
		echo "$header: no member $member in struct $struct"
		exit 1
	}
	mv "$out/new" "$header"
done
[ -n "$names" ] || {
	echo "$api: no structure found: this script sees nothing"
	exit 1
}
