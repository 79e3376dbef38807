/* SPDX-License-Identifier: BSD-2-Clause */
/* printf() with Microsoft's formats, for programs linked with -Wl,--wrap=printf,--wrap=fprintf. The
 * two other names are those that the platform's headers use with _FORTIFY_SOURCE. */
#include <stdarg.h>
#include <stdio.h>

int ndx_nd_vfprintf(FILE *stream, const char *format, va_list arguments);

int __wrap_printf(const char *format, ...);
int __wrap_fprintf(FILE *stream, const char *format, ...);
int __wrap___printf_chk(int level, const char *format, ...);
int __wrap___fprintf_chk(FILE *stream, int level, const char *format, ...);

int __wrap_printf(const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = ndx_nd_vfprintf(stdout, format, arguments);
	va_end(arguments);
	return length;
}

int __wrap_fprintf(FILE *stream, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = ndx_nd_vfprintf(stream, format, arguments);
	va_end(arguments);
	return length;
}

int __wrap___printf_chk(int level, const char *format, ...)
{
	va_list arguments;
	int length;

	(void)level;
	va_start(arguments, format);
	length = ndx_nd_vfprintf(stdout, format, arguments);
	va_end(arguments);
	return length;
}

int __wrap___fprintf_chk(FILE *stream, int level, const char *format, ...)
{
	va_list arguments;
	int length;

	(void)level;
	va_start(arguments, format);
	length = ndx_nd_vfprintf(stream, format, arguments);
	va_end(arguments);
	return length;
}
