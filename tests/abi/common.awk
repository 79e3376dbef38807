# SPDX-License-Identifier: BSD-2-Clause
# usage: awk -f common.awk BASELINE NEW
# Write NEW, as abidw makes it, without what the rules of docs/design/abi.md allow to be new since BASELINE:
# members behind the end of a structure that grows, and enumerators. What is left must be as in
# BASELINE. The suppressions of abidiff cannot say this: one that allows a structure to grow hides
# all other changes of the structure, and of the types of its members.

# attribute NAME: its value in this line, "" if there is none
function attribute(name) {
	if (!match($0, " " name "='[^']*'"))
		return ""
	return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
}

FNR == 1 { file++ }
/<(class|union)-decl / {
	type = attribute("name")
	members = 0
	bits = attribute("size-in-bits")
}
/<enum-decl / { type = attribute("name") }
/<data-member / {
	offset = attribute("layout-offset-in-bits")
	members++
}

file == 1 {
	if (/<class-decl / && bits != "")
		size[type] = bits
	if (/<var-decl /) {
		member = attribute("name")
		# A structure grows if it begins with `size`, or with `abi` and `size`.
		if (member == "size" && (members == 1 || (members == 2 && first == "abi")))
			grows[type]
		# Its size stands in ndx_provider.ops_size.
		if (type ~ /^ndx_provider_ops/)
			grows[type]
		if (members == 1)
			first = member
	}
	if (/<enumerator /)
		known[type, attribute("name")]
	next
}

/<enumerator / && !((type, attribute("name")) in known) { next }
/<class-decl / && (type in grows) && bits + 0 > size[type] + 0 {
	sub(/size-in-bits='[0-9]*'/, "size-in-bits='" size[type] "'")
}
# What lies in the padding of the former structure stays: an older program leaves any value there.
/<data-member / && (type in grows) && offset + 0 >= size[type] + 0 { skip = 1 }
skip {
	if (/<\/data-member>/)
		skip = 0
	next
}
{ print }
