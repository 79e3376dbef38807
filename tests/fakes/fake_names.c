/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { LONGEST_MS = 20000 }; /* a test that fails must end */

struct names names;
static uint32_t go; /* atomic */

typedef int getaddrinfo_fn(const char *host, const char *port, const struct addrinfo *hints,
                           struct addrinfo **found);

void names_reset(void)
{
	names = (struct names){0};
	__atomic_store_n(&go, 0, __ATOMIC_SEQ_CST);
}

void names_go(void)
{
	__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
}

static void hang(void)
{
	(void)__atomic_add_fetch(&names.hanging, 1, __ATOMIC_SEQ_CST);
	for (int ms = 0; ms < LONGEST_MS && __atomic_load_n(&go, __ATOMIC_SEQ_CST) == 0; ms++)
		(void)poll(NULL, 0, 1);
	(void)__atomic_add_fetch(&names.answered, 1, __ATOMIC_SEQ_CST);
}

static const struct {
	const char *host;
	const char *numbers[2];
	bool hangs;
	int refusal; /* of a caller with AI_ADDRCONFIG */
} known[] = {
	{"one.test", {"127.0.0.1"}, false, 0},
	{"two.test", {"127.0.0.1", "127.0.0.2"}, false, 0},
	{"twice.test", {"127.0.0.1", "127.0.0.1"}, false, 0},
	{"half.test", {"192.0.2.1", "127.0.0.1"}, false, 0},
	{"away.test", {"192.0.2.1"}, false, 0},
	{"near.test", {"127.0.0.1", "192.0.2.1"}, false, 0},
	{"both.test", {"0.0.0.0", "::"}, false, 0},
	{"htob.test", {"::", "0.0.0.0"}, false, 0},
	{"family.test", {"127.0.0.1"}, false, EAI_ADDRFAMILY},
	{"noname.test", {"127.0.0.1"}, false, EAI_NONAME},
	{"again.test", {"127.0.0.1"}, false, EAI_AGAIN},
	{"hangs.test", {"127.0.0.1"}, true, 0},
};

/* freeaddrinfo() takes a list apart, so two may be made one. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): reserved there */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **found)
{
	getaddrinfo_fn *real;
	size_t i = 0;
	int error;

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0)
		return real(host, port, hints, found);
	(void)__atomic_add_fetch(&names.asked, 1, __ATOMIC_SEQ_CST);
	while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i].host, host) != 0)
		i++;
	if (i == sizeof(known) / sizeof(known[0]))
		return real(host, port, hints, found);
	if (known[i].hangs)
		hang();
	if (known[i].refusal != 0 && hints != NULL && (hints->ai_flags & AI_ADDRCONFIG) != 0)
		return known[i].refusal;
	error = real(known[i].numbers[0], port, hints, found);
	if (error == 0 && known[i].numbers[1] != NULL)
		error = real(known[i].numbers[1], port, hints, &(*found)->ai_next);
	return error;
}
