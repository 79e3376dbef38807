/* SPDX-License-Identifier: BSD-2-Clause */
/* Copying, comparing and reading text, and streams with wide names. */
#include "winrt.h"

#include <limits.h>
#include <strings.h>

namespace
{

size_t length_of(const char *text, size_t most)
{
	return strnlen(text, most);
}

size_t length_of(const wchar_t *text, size_t most)
{
	return wcsnlen(text, most);
}

/* Put the source behind the first `used` elements; the target is empty if there is no room. */
template <class Char> errno_t append(Char *target, size_t room, size_t used, const Char *source)
{
	const size_t length = source == nullptr ? 0 : length_of(source, room);
	errno_t error = 0;

	if (target == nullptr || source == nullptr)
		error = EINVAL;
	else if (used >= room || length >= room - used)
		error = ERANGE;
	if (error == 0) {
		memmove(target + used, source, (length + 1) * sizeof(Char));
		return 0;
	}
	if (target != nullptr && room > 0)
		target[0] = 0;
	errno = error;
	return error;
}

template <class Char> size_t used_in(const Char *target, size_t room)
{
	return target == nullptr ? 0 : length_of(target, room);
}

/* A wide name in the encoding of the locale; nullptr, and errno, if there is none. */
char *narrow(const wchar_t *name)
{
	const size_t most = (wcslen(name) + 1) * MB_LEN_MAX;
	char *const bytes = static_cast<char *>(malloc(most));

	if (bytes != nullptr && wcstombs(bytes, name, most) == static_cast<size_t>(-1)) {
		free(bytes);
		return nullptr;
	}
	return bytes;
}

FILE *open_named(const wchar_t *path, const wchar_t *mode, FILE *stream)
{
	char *const bytes = narrow(path);
	char *const letters = narrow(mode);
	FILE *opened = nullptr;

	if (bytes != nullptr && letters != nullptr)
		opened =
			stream == nullptr ? fopen(bytes, letters) : freopen(bytes, letters, stream);
	free(letters);
	free(bytes);
	return opened;
}

} // namespace

errno_t strcpy_s(char *target, size_t room, const char *source)
{
	return append(target, room, 0, source);
}

errno_t strcat_s(char *target, size_t room, const char *source)
{
	return append(target, room, used_in(target, room), source);
}

errno_t wcscpy_s(wchar_t *target, size_t room, const wchar_t *source)
{
	return append(target, room, 0, source);
}

errno_t wcscat_s(wchar_t *target, size_t room, const wchar_t *source)
{
	return append(target, room, used_in(target, room), source);
}

errno_t memcpy_s(void *target, size_t room, const void *source, size_t bytes)
{
	if (bytes == 0)
		return 0;
	if (target != nullptr && source != nullptr && bytes <= room) {
		memcpy(target, source, bytes);
		return 0;
	}
	if (target != nullptr)
		memset(target, 0, room);
	errno = target == nullptr || source == nullptr ? EINVAL : ERANGE;
	return errno;
}

int _stricmp(const char *left, const char *right)
{
	return strcasecmp(left, right);
}

int _wcsicmp(const wchar_t *left, const wchar_t *right)
{
	return wcscasecmp(left, right);
}

LONGLONG _wtoi64(const wchar_t *text)
{
	return wcstoll(text, nullptr, 10);
}

int _wtoi(const wchar_t *text)
{
	const LONGLONG value = _wtoi64(text);

	if (value > INT_MAX)
		return INT_MAX;
	return value < INT_MIN ? INT_MIN : static_cast<int>(value);
}

long _wtol(const wchar_t *text)
{
	return _wtoi(text);
}

FILE *_wfopen(const wchar_t *path, const wchar_t *mode)
{
	return open_named(path, mode, nullptr);
}

FILE *_wfreopen(const wchar_t *path, const wchar_t *mode, FILE *stream)
{
	return open_named(path, mode, stream);
}

int _fcloseall()
{
	(void)fflush(nullptr);
	return 0;
}
