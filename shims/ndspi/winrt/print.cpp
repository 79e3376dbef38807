/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing with Microsoft's formats. Wide output goes to narrow streams. */
#include "winrt.h"
#include "format.h"

#include <limits.h>

namespace
{

FILE *open_memory(char **text, size_t *length)
{
	return open_memstream(text, length);
}

FILE *open_memory(wchar_t **text, size_t *length)
{
	return open_wmemstream(text, length);
}

/* The formats are those of the program, translated. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

int print_native(FILE *stream, const char *format, va_list arguments)
{
	return vfprintf(stream, format, arguments);
}

#undef vfwprintf
int print_native(FILE *stream, const wchar_t *format, va_list arguments)
{
	return vfwprintf(stream, format, arguments);
}

bool is_wide(const char *)
{
	return false;
}

bool is_wide(const wchar_t *)
{
	return true;
}

/* The text of a format, of any length; the caller frees the text. */
template <class Char> Char *print_to_memory(const Char *format, va_list arguments, size_t *length)
{
	Char *const native = format_translate(format, is_wide(format));
	Char *text = nullptr;
	FILE *const stream = native == nullptr ? nullptr : open_memory(&text, length);
	bool ok = stream != nullptr;

	if (ok) {
		ok = print_native(stream, native, arguments) >= 0;
		ok = fclose(stream) == 0 && ok && *length <= INT_MAX;
	}
	free(native);
	if (ok)
		return text;
	free(text);
	return nullptr;
}

/* -1: the text has no room; as much of it as there is room for is there, and nothing behind it. */
template <class Char>
int print_to_room(Char *target, size_t room, const Char *format, va_list arguments)
{
	size_t length;
	Char *const text = print_to_memory(format, arguments, &length);

	if (text == nullptr)
		return -1;
	if (target != nullptr)
		memcpy(target, text, (length < room ? length + 1 : room) * sizeof(Char));
	free(text);
	return length < room ? static_cast<int>(length) : -1;
}

/* The same, but a text of exactly the room has room, without an end; without target and room: its
 * length. */
template <class Char>
int print_unended(Char *target, size_t room, const Char *format, va_list arguments)
{
	size_t length;
	Char *const text = print_to_memory(format, arguments, &length);
	const bool counts = target == nullptr && room == 0;

	if (text == nullptr)
		return -1;
	if (target != nullptr)
		memcpy(target, text, (length < room ? length + 1 : room) * sizeof(Char));
	free(text);
	return counts || length <= room ? static_cast<int>(length) : -1;
}

/* The same, but a text that has no room leaves an empty one. */
template <class Char>
int print_securely(Char *target, size_t room, const Char *format, va_list arguments)
{
	int length;

	if (target == nullptr || room == 0) {
		errno = EINVAL;
		return -1;
	}
	length = print_to_room(target, room, format, arguments);
	if (length < 0)
		target[0] = 0;
	return length;
}

/* Write wide text in the encoding of the locale, by one fwrite(), so that the text is not torn. */
bool write_wide(FILE *stream, const wchar_t *text, size_t length)
{
	char *const bytes = static_cast<char *>(malloc(length * MB_LEN_MAX + 1));
	mbstate_t state = {};
	size_t used = 0;
	bool ok;

	if (bytes == nullptr)
		return false;
	for (size_t i = 0; i < length; i++) {
		const size_t got = wcrtomb(bytes + used, text[i], &state);

		if (got != static_cast<size_t>(-1)) {
			used += got;
			continue;
		}
		bytes[used++] = '?';
		memset(&state, 0, sizeof(state));
	}
	ok = fwrite(bytes, 1, used, stream) == used;
	free(bytes);
	return ok;
}

} // namespace

int ndx_nd_vfwprintf(FILE *stream, const wchar_t *format, va_list arguments)
{
	size_t length;
	wchar_t *const text = print_to_memory(format, arguments, &length);
	const bool ok = text != nullptr && write_wide(stream, text, length);

	free(text);
	return ok ? static_cast<int>(length) : -1;
}

int ndx_nd_vwprintf(const wchar_t *format, va_list arguments)
{
	return ndx_nd_vfwprintf(stdout, format, arguments);
}

int ndx_nd_fwprintf(FILE *stream, const wchar_t *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = ndx_nd_vfwprintf(stream, format, arguments);
	va_end(arguments);
	return length;
}

int ndx_nd_wprintf(const wchar_t *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = ndx_nd_vfwprintf(stdout, format, arguments);
	va_end(arguments);
	return length;
}

int ndx_nd_fputws(const wchar_t *text, FILE *stream)
{
	return write_wide(stream, text, wcslen(text)) ? 0 : -1;
}

int _putws(const wchar_t *text)
{
	return ndx_nd_wprintf(L"%s\n", text) < 0 ? -1 : 0;
}

int ndx_nd_vfprintf(FILE *stream, const char *format, va_list arguments)
{
	char *const native = format_translate(format, false);
	const int length = native == nullptr ? -1 : print_native(stream, native, arguments);

	free(native);
	return length;
}

int ndx_nd_vprintf(const char *format, va_list arguments)
{
	return ndx_nd_vfprintf(stdout, format, arguments);
}

int ndx_nd_swprintf(wchar_t *text, size_t room, const wchar_t *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = print_to_room(text, room, format, arguments);
	va_end(arguments);
	if (length < 0 && text != nullptr && room > 0)
		text[room - 1] = L'\0';
	return length;
}

int _snwprintf(wchar_t *text, size_t room, const wchar_t *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = print_unended(text, room, format, arguments);
	va_end(arguments);
	return length;
}

int _snprintf(char *text, size_t room, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = print_unended(text, room, format, arguments);
	va_end(arguments);
	return length;
}

int sprintf_s(char *text, size_t room, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = print_securely(text, room, format, arguments);
	va_end(arguments);
	return length;
}

int swprintf_s(wchar_t *text, size_t room, const wchar_t *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = print_securely(text, room, format, arguments);
	va_end(arguments);
	return length;
}
