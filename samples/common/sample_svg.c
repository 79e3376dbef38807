/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_svg.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "sample_json.h"
#include "sample_options.h"

/* Whether the file may be replaced: it is not there, no file, empty, or a picture. */
static bool may_replace(const char *path)
{
	char head[8] = "";
	struct stat st;
	size_t length;
	FILE *file;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return true;
	file = fopen(path, "re");
	if (file == NULL)
		return true; /* opening for writing fails, too, and says why */
	length = fread(head, 1, sizeof(head) - 1, file);
	(void)fclose(file);
	return (length >= 4 && memcmp(head, "<svg", 4) == 0) ||
	       (length >= 5 && memcmp(head, "<?xml", 5) == 0);
}

int sample_svg_open(const char *program, const char *path, FILE **out)
{
	*out = stdout;
	if (strcmp(path, "-") == 0)
		return SAMPLE_EXIT_OK;
	if (!may_replace(path)) {
		*out = NULL;
		return sample_error(program,
		                    "%s is there, and is no SVG; remove it, or name another file",
		                    path);
	}
	*out = fopen(path, "we");
	if (*out != NULL)
		return SAMPLE_EXIT_OK;
	return sample_error(program, "%s cannot be written: %s", path, strerror(errno));
}

void sample_svg_begin(FILE *out, double width, double height, const char *family)
{
	fprintf(out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
	        "viewBox=\"0 0 %.0f %.0f\" font-family=\"%s\" font-size=\"12\">\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
	        width, height, width, height, family);
}

static void put_escaped(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c == '&')
			fputs("&amp;", out);
		else if (c == '<')
			fputs("&lt;", out);
		else if (c == '>')
			fputs("&gt;", out);
		else if ((c & 0xc0) != 0x80) /* one ? for a character of several bytes */
			fputc(c >= ' ' && c <= '~' ? c : '?', out);
	}
}

void sample_svg_text(FILE *out, double x, double y, const char *more, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s%s>", x, y, more[0] != '\0' ? " " : "", more);
	put_escaped(out, text);
	fputs("</text>\n", out);
}

int sample_svg_close(const char *program, const char *path, FILE *out, int rc)
{
	bool good;
	int error;

	fputs("</svg>\n", out);
	good = ferror(out) == 0;
	errno = 0;
	if (out == stdout)
		good = fflush(out) == 0 && good;
	else
		good = fclose(out) == 0 && good;
	error = errno;
	if (good)
		return rc;
	(void)sample_error(program, "%s cannot be written: %s",
	                   strcmp(path, "-") == 0 ? "stdout" : path,
	                   error != 0 ? strerror(error) : "a write failed");
	return rc != SAMPLE_EXIT_OK ? rc : SAMPLE_EXIT_FAILED;
}
