/* SPDX-License-Identifier: BSD-2-Clause */
/* Pictures as SVG: the file, and text with what XML reserves. */
#ifndef SAMPLE_SVG_H
#define SAMPLE_SVG_H

#include <stdio.h>

/**
 * Open a picture. An existing file is replaced only if it is empty, or is an SVG: an output that is
 * mistyped must not cost another file.
 *
 * @param path      "-": stdout
 * @param[out] out  for sample_svg_begin() and what follows, then sample_svg_close()
 * @return an enum sample_exit; a failure was printed
 */
int sample_svg_open(const char *program, const char *path, FILE **out);

/** Its head: a size in pixels, a white ground, letters of 12 pixels. @p family: "sans-serif" */
void sample_svg_begin(FILE *out, double width, double height, const char *family);

/**
 * A text.
 *
 * @param more  attributes, e.g. "text-anchor=\"end\""; "": none
 * @param text  any; what is not printable ASCII becomes "?"
 */
void sample_svg_text(FILE *out, double x, double y, const char *more, const char *text);

/** Its end, and that of the file; a full disk is an error. @p rc: the exit status so far. */
int sample_svg_close(const char *program, const char *path, FILE *out, int rc);

#endif
