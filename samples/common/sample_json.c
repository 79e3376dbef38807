/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_json.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample_options.h"

/* What threads have told. */
static struct {
	pthread_mutex_t lock;
	char error[512]; /* the first; "": none */
	json_t *results; /* NULL: none */
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A copy of stdout for the JSON; stdout itself becomes stderr. */
static FILE *divert_stdout(void)
{
	const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	FILE *file;

	if (copy < 0)
		return NULL;
	(void)fflush(stdout);
	file = fdopen(copy, "w");
	if (file == NULL) {
		(void)close(copy);
		return NULL;
	}
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		(void)fclose(file);
		return NULL;
	}
	return file;
}

int sample_json_open(const char *program, const char *where, FILE **out)
{
	*out = NULL;
	if (where == NULL)
		return SAMPLE_EXIT_OK;
	*out = strcmp(where, "-") == 0 ? divert_stdout() : fopen(where, "we");
	if (*out != NULL)
		return SAMPLE_EXIT_OK;
	fprintf(stderr, "%s: no JSON can be written to %s: %s\n", program,
	        strcmp(where, "-") == 0 ? "stdout" : where, strerror(errno));
	return SAMPLE_EXIT_FAILED;
}

/* `error`: the errno of a write that failed before; 0: unknown, or none did. */
static int close_file(const char *program, FILE *out, int rc, int error)
{
	bool good = ferror(out) == 0;

	if (fflush(out) != 0 && error == 0)
		error = errno;
	good = fclose(out) == 0 && good && error == 0;
	if (good)
		return rc;
	fprintf(stderr, "%s: the JSON cannot be written: %s\n", program,
	        error != 0 ? strerror(error) : "a write failed");
	return rc != SAMPLE_EXIT_OK ? rc : SAMPLE_EXIT_FAILED;
}

int sample_json_close(const char *program, FILE *out, int rc)
{
	return out != NULL ? close_file(program, out, rc, 0) : rc;
}

int sample_json_end(const char *program, FILE *out, json_t *object, int rc)
{
	char error[sizeof(told.error)];
	int written = 0;
	json_t *results, *root;
	char *text;

	(void)fflush(stdout); /* if that goes to stderr now, it comes before the JSON */
	(void)pthread_mutex_lock(&told.lock);
	memcpy(error, told.error, sizeof(error));
	results = told.results;
	told.results = NULL;
	(void)pthread_mutex_unlock(&told.lock);
	if (out == NULL) {
		json_decref(results);
		json_decref(object);
		return rc;
	}
	root = json_object();
	json_object_set_new(root, "program", json_string(program));
	json_object_set_new(root, "version", json_string(NDX_PROGRAM_VERSION));
	json_object_set_new(root, "exit", json_integer(rc));
	json_object_set_new(root, "error", sample_json_text(error[0] != '\0' ? error : NULL));
	if (object != NULL)
		json_object_update(root, object);
	if (results != NULL)
		json_object_update(root, results);
	json_decref(results);
	json_decref(object);
	text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(root);
	if (text == NULL)
		written = ENOMEM;
	else if (fputs(text, out) == EOF || fputc('\n', out) == EOF)
		written = errno;
	free(text);
	return close_file(program, out, rc, written);
}

void sample_json_error(const char *text)
{
	(void)pthread_mutex_lock(&told.lock);
	if (told.error[0] == '\0')
		snprintf(told.error, sizeof(told.error), "%s", text);
	(void)pthread_mutex_unlock(&told.lock);
}

int sample_error(const char *program, const char *format, ...)
{
	char text[sizeof(told.error)];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", program, text);
	sample_json_error(text);
	return SAMPLE_EXIT_FAILED;
}

void sample_json_add(const char *name, json_t *value)
{
	(void)pthread_mutex_lock(&told.lock);
	if (told.results == NULL)
		told.results = json_object();
	json_object_set_new(told.results, name, value);
	(void)pthread_mutex_unlock(&told.lock);
}

json_t *sample_json_text(const char *text)
{
	json_t *string = text != NULL ? json_string(text) : json_null();

	return string != NULL ? string : json_string("(not UTF-8)");
}
