/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Close-on-exec for a library that creates its sockets and epoll sets without the flag and does not
 * report their descriptors. The calls of that library into the C library are redirected to
 * functions that set the flag atomically, as they create the descriptor. Only the relocation tables
 * of that shared object change.
 */
#include <ndx/spi/close_on_exec.h>

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int accept_closed(int fd, struct sockaddr *address, socklen_t *length)
{
	return accept4(fd, address, length, SOCK_CLOEXEC);
}

static int socket_closed(int domain, int type, int protocol)
{
	return socket(domain, type | SOCK_CLOEXEC, protocol);
}

static int socketpair_closed(int domain, int type, int protocol, int fds[2])
{
	return socketpair(domain, type | SOCK_CLOEXEC, protocol, fds);
}

static int epoll_closed(int size)
{
	(void)size;
	return epoll_create1(EPOLL_CLOEXEC);
}

static int epoll_flags_closed(int flags)
{
	return epoll_create1(flags | EPOLL_CLOEXEC);
}

typedef void any_fn(void);

static const struct {
	const char *name;
	any_fn *instead;
} calls[] = {
	{"accept", (any_fn *)accept_closed},
	{"socket", (any_fn *)socket_closed},
	{"socketpair", (any_fn *)socketpair_closed},
	{"epoll_create", (any_fn *)epoll_closed},
	{"epoll_create1", (any_fn *)epoll_flags_closed},
};

/* The parts of a shared object's dynamic section that the redirection needs. */
struct object {
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *names;
	uintptr_t tables[2]; /* relocations with addend */
	size_t sizes[2];
	uintptr_t protect; /* the part that the dynamic linker made read-only */
	size_t protect_size;
};

struct search {
	uintptr_t address;
	struct object object;
	bool found;
};

static void read_dynamic(struct object *o, const ElfW(Dyn) * dynamic)
{
	bool with_addend = false;

	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		const uintptr_t at = (uintptr_t)dynamic->d_un.d_ptr;

		switch (dynamic->d_tag) {
		case DT_SYMTAB:
			o->symbols = (const ElfW(Sym) *)at;
			break;
		case DT_STRTAB:
			o->names = (const char *)at;
			break;
		case DT_JMPREL:
			o->tables[0] = at;
			break;
		case DT_PLTRELSZ:
			o->sizes[0] = (size_t)dynamic->d_un.d_val;
			break;
		case DT_PLTREL:
			with_addend = dynamic->d_un.d_val == DT_RELA;
			break;
		case DT_RELA:
			o->tables[1] = at;
			break;
		case DT_RELASZ:
			o->sizes[1] = (size_t)dynamic->d_un.d_val;
			break;
		default:
			break;
		}
	}
	if (!with_addend)
		o->sizes[0] = 0;
}

static int find_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	const ElfW(Phdr) *dynamic = NULL;

	(void)size;
	memset(&s->object, 0, sizeof(s->object));
	s->object.base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && s->address >= start && s->address - start < p->p_memsz)
			s->found = true;
		else if (p->p_type == PT_DYNAMIC)
			dynamic = p;
		else if (p->p_type == PT_GNU_RELRO) {
			s->object.protect = start;
			s->object.protect_size = p->p_memsz;
		}
	}
	if (!s->found)
		return 0;
	/* Refuse the program itself: its relocations serve the calls of all its code. */
	s->found = dynamic != NULL && info->dlpi_name[0] != '\0';
	if (!s->found)
		return 1;
	read_dynamic(&s->object, (const ElfW(Dyn) *)(info->dlpi_addr + dynamic->p_vaddr));
	return 1;
}

static any_fn *instead_of(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].instead;
	}
	return NULL;
}

/* Whether a relocation holds the address of a called function. */
static bool is_call(const ElfW(Rela) * r)
{
#if defined(__x86_64__)
	const uint32_t type = ELF64_R_TYPE(r->r_info);

	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
	const uint32_t type = ELF64_R_TYPE(r->r_info);

	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#else
	(void)r;
	return false;
#endif
}

/* Make the pages of the table writable, or restore their rights. */
static bool protect(const struct object *o, int rights)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t start = o->protect & ~(page - 1);
	/* The linker ends the read-only part at a page; the rest of the last page is writable
	 * anyway. */
	const uintptr_t end = (o->protect + o->protect_size) & ~(page - 1);

	return end <= start || mprotect((void *)start, end - start, rights) == 0;
}

static bool redirect_calls(const struct object *o)
{
	bool any = false;

	for (size_t t = 0; t < 2; t++) {
		const ElfW(Rela) *r = (const ElfW(Rela) *)o->tables[t];

		for (size_t n = o->sizes[t] / sizeof(*r); n > 0; n--, r++) {
			const ElfW(Sym) *symbol = &o->symbols[ELF64_R_SYM(r->r_info)];
			any_fn *instead =
				is_call(r) ? instead_of(o->names + symbol->st_name) : NULL;

			if (instead == NULL)
				continue;
			__atomic_store_n((any_fn **)(o->base + r->r_offset), instead,
			                 __ATOMIC_RELAXED);
			any = true;
		}
	}
	return any;
}

bool ndxp_close_on_exec(const void *function)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct search s = {.address = (uintptr_t)function};
	bool done;

	(void)dl_iterate_phdr(find_object, &s);
	if (!s.found || s.object.symbols == NULL || s.object.names == NULL)
		return false;
	(void)pthread_mutex_lock(&lock);
	done = protect(&s.object, PROT_READ | PROT_WRITE);
	if (done) {
		done = redirect_calls(&s.object);
		(void)protect(&s.object, PROT_READ);
	}
	(void)pthread_mutex_unlock(&lock);
	return done;
}
