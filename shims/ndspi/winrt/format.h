/* SPDX-License-Identifier: BSD-2-Clause */
/* The formats of Microsoft's printf(), said in the words of the platform's. */
#ifndef NDX_WINRT_FORMAT_H
#define NDX_WINRT_FORMAT_H

#include <stdlib.h>
#include <string.h>

template <class Char> inline bool format_is_among(Char c, const char *set)
{
	return c > 0 && c <= '~' && strchr(set, static_cast<int>(c)) != nullptr;
}

template <class Char> inline bool format_is(const Char *begin, const Char *end, const char *word)
{
	while (begin < end && *word != '\0' && *begin == static_cast<Char>(*word)) {
		begin++;
		word++;
	}
	return begin == end && *word == '\0';
}

/* The end of the letters between the width and the conversion. */
template <class Char> inline const Char *format_skip_size(const Char *from)
{
	if (*from == 'I') {
		if ((from[1] == '6' && from[2] == '4') || (from[1] == '3' && from[2] == '2'))
			return from + 3;
		return from + 1;
	}
	while (format_is_among(*from, "hlwLjztq"))
		from++;
	return from;
}

/* What stands for the letters [begin, end) before this conversion; nullptr: they themselves. */
template <class Char>
inline const char *format_size(const Char *begin, const Char *end, Char conversion, bool wide)
{
	if (format_is_among(conversion, "sScC")) {
		if (format_is(begin, end, "l") || format_is(begin, end, "w"))
			return "l";
		if (format_is(begin, end, "h"))
			return "";
		return wide != format_is_among(conversion, "SC") ? "l" : "";
	}
	if (format_is(begin, end, "I64"))
		return "ll";
	if (format_is(begin, end, "I"))
		return "z";
	/* A long of Windows has 32 bits. */
	if (format_is(begin, end, "I32") ||
	    (format_is(begin, end, "l") && format_is_among(conversion, "diouxX")))
		return "";
	return nullptr;
}

/* wide: %s and %c are wide, %S and %C narrow; else the other way round. The caller frees the
 * result, which is nullptr without memory. */
template <class Char> inline Char *format_translate(const Char *from, bool wide)
{
	Char *text;
	Char *to;
	size_t length = 0;

	while (from[length] != 0)
		length++;
	/* Each conversion has two letters at least, and gains one at most. */
	to = text = static_cast<Char *>(malloc((2 * length + 1) * sizeof(Char)));
	while (text != nullptr && *from != 0) {
		const Char *begin;
		const char *size;

		*to++ = *from++;
		if (from[-1] != '%')
			continue;
		while (format_is_among(*from, "-+ #0'123456789.*$"))
			*to++ = *from++;
		begin = from;
		from = format_skip_size(from);
		size = format_size(begin, from, *from, wide);
		while (size != nullptr ? *size != '\0' : begin < from)
			*to++ = size != nullptr ? static_cast<Char>(*size++) : *begin++;
		if (*from == 'S' || *from == 'C')
			*to++ = static_cast<Char>(*from++ + ('a' - 'A'));
		else if (*from != 0)
			*to++ = *from++;
	}
	if (text != nullptr)
		*to = 0;
	return text;
}

#endif
