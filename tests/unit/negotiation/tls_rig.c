/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates, a server with TLS, what the log says, and a proxy in the way. */
#include "tls_rig.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

/* ---- papers ---- */

static struct papers papers;

const char *paper(const char *name)
{
	static char paths[64][384];
	static unsigned turn;
	char *path = paths[turn++ % 64];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", papers.dir, name);
	return path;
}

static FILE *open_paper(const char *name, const char *extension, unsigned mode)
{
	char file[64];
	FILE *f;

	(void)snprintf(file, sizeof(file), "%s.%s", name, extension);
	f = fopen(paper(file), "we");
	assert_non_null(f);
	assert_int_equal(fchmod(fileno(f), mode), 0);
	return f;
}

void paper_write(const char *name, const char *text, unsigned mode)
{
	FILE *f = fopen(paper(name), "we");

	assert_non_null(f);
	assert_int_equal(fchmod(fileno(f), mode), 0);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void papers_age(void)
{
	(void)poll(NULL, 0, 150);
}

void paper_join(const char *name, const char *one, const char *two)
{
	const char *const parts[] = {one, two};
	char text[8192];
	size_t used = 0;

	for (int i = 0; i < 2; i++) {
		FILE *f = fopen(paper(parts[i]), "re");

		assert_non_null(f);
		used += fread(text + used, 1, sizeof(text) - 1 - used, f);
		assert_int_equal(fclose(f), 0);
	}
	text[used] = '\0';
	paper_write(name, text, 0644);
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(e);
	assert_int_equal(X509_add_ext(cert, e, -1), 1);
	X509_EXTENSION_free(e);
}

static X509 *new_cert(EVP_PKEY *key, const char *subject, int from_days, int to_days)
{
	static long serial;
	X509 *cert = X509_new();
	X509_NAME *name;

	assert_non_null(cert);
	assert_int_equal(X509_set_version(cert, 2), 1);
	assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial), 1);
	assert_non_null(X509_gmtime_adj(X509_getm_notBefore(cert), from_days * 86400L));
	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert), to_days * 86400L));
	assert_int_equal(X509_set_pubkey(cert, key), 1);
	name = X509_get_subject_name(cert);
	assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
	                                            (const unsigned char *)subject, -1, -1, 0),
	                 1);
	return cert;
}

static void save(const char *file, X509 *cert, EVP_PKEY *key)
{
	FILE *f = open_paper(file, "pem", 0644);

	assert_int_equal(PEM_write_X509(f, cert), 1);
	assert_int_equal(fclose(f), 0);
	f = open_paper(file, "key", 0600);
	assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	assert_int_equal(fclose(f), 0);
}

static void make_ca(const char *file)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = new_cert(key, file, -30, 30);

	assert_int_equal(X509_set_issuer_name(cert, X509_get_subject_name(cert)), 1);
	add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
	add_extension(cert, cert, NID_key_usage, "critical,keyCertSign");
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	save(file, cert, key);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static FILE *read_paper(const char *name, const char *extension)
{
	char file[64];
	FILE *f;

	(void)snprintf(file, sizeof(file), "%s.%s", name, extension);
	f = fopen(paper(file), "re");
	assert_non_null(f);
	return f;
}

static void make_leaf(const struct leaf *leaf, const char *constraints)
{
	FILE *in = read_paper(leaf->ca, "pem");
	X509 *ca = PEM_read_X509(in, NULL, NULL, NULL);
	EVP_PKEY *key = EVP_EC_gen("P-256");
	EVP_PKEY *ca_key;
	X509 *cert;

	(void)fclose(in);
	in = read_paper(leaf->ca, "key");
	ca_key = PEM_read_PrivateKey(in, NULL, NULL, NULL);
	(void)fclose(in);
	assert_non_null(ca);
	assert_non_null(ca_key);
	cert = new_cert(key, leaf->subject, leaf->from_days, leaf->to_days);
	assert_int_equal(X509_set_issuer_name(cert, X509_get_subject_name(ca)), 1);
	add_extension(cert, ca, NID_basic_constraints, constraints);
	add_extension(cert, ca, NID_subject_alt_name, leaf->names);
	assert_true(X509_sign(cert, ca_key, EVP_sha256()) > 0);
	save(leaf->file, cert, key);
	X509_free(cert);
	X509_free(ca);
	EVP_PKEY_free(key);
	EVP_PKEY_free(ca_key);
}

void papers_leaf(const struct leaf *leaf)
{
	make_leaf(leaf, "CA:FALSE");
}

void papers_middle(const struct leaf *middle)
{
	make_leaf(middle, "critical,CA:TRUE");
}

void papers_root(const char *file, const char *of)
{
	FILE *in = read_paper(of, "pem");
	X509 *cert = PEM_read_X509(in, NULL, NULL, NULL);
	EVP_PKEY *key;

	(void)fclose(in);
	in = read_paper(of, "key");
	key = PEM_read_PrivateKey(in, NULL, NULL, NULL);
	(void)fclose(in);
	assert_non_null(cert);
	assert_non_null(key);
	assert_int_equal(X509_set_issuer_name(cert, X509_get_subject_name(cert)), 1);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	save(file, cert, key);
	X509_free(cert);
	EVP_PKEY_free(key);
}

int papers_make(void **state)
{
	static const struct leaf leaves[] = {
		{"server", "ca", "the server", "DNS:localhost,IP:127.0.0.1", -1, 30},
		{"client", "ca", "the client", "DNS:client.example,URI:spiffe://example/c", -1, 30},
		{"alien-leaf", "alien", "an alien", "DNS:localhost,IP:127.0.0.1", -1, 30},
		{"second", "ca", "the second client", "DNS:second.example", -1, 30},
		{"other", "ca", "another", "DNS:other.example,IP:127.0.0.9", -1, 30},
	};

	(void)state;
	(void)snprintf(papers.dir, sizeof(papers.dir), "/tmp/ndx-test-XXXXXX");
	assert_non_null(mkdtemp(papers.dir));
	make_ca("ca");
	make_ca("alien");
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		papers_leaf(&leaves[i]);
	paper_write("psk", "# keys\nalice:000102030405060708090a0b0c0d0e0f\n", 0600);
	paper_write("psk-wrong", "alice:ff0102030405060708090a0b0c0d0e0f\n", 0600);
	paper_write("psk-unknown", "bob:000102030405060708090a0b0c0d0e0f\n", 0600);
	return 0;
}

int papers_remove(void **state)
{
	DIR *d = opendir(papers.dir);
	struct dirent *e;

	(void)state;
	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		(void)unlink(paper(e->d_name));
	(void)closedir(d);
	return rmdir(papers.dir);
}

struct ndx_tls_attr tls_client(void)
{
	struct ndx_tls_attr a;

	ndx_tls_attr_init(&a);
	a.cert_file = paper("client.pem");
	a.key_file = paper("client.key");
	a.ca_file = paper("ca.pem");
	return a;
}

struct ndx_tls_attr tls_server(void)
{
	struct ndx_tls_attr a;

	ndx_tls_attr_init(&a);
	a.cert_file = paper("server.pem");
	a.key_file = paper("server.key");
	a.ca_file = paper("ca.pem");
	return a;
}

/* ---- ends ---- */

void host_attr(const struct rig *r, const struct ndx_tls_attr *tls, uint32_t hello_ms,
               struct ndx_negotiation_server_attr *attr)
{
	ndx_negotiation_server_attr_init(attr);
	attr->address = "127.0.0.1:0";
	attr->variants = &r->variant;
	attr->variant_count = 1;
	attr->max_message = MESSAGE;
	attr->hello_timeout_ms = hello_ms;
	attr->tls = tls;
}

void host_begin(struct host *h, const struct ndx_negotiation_server_attr *attr)
{
	socklen_t length = sizeof(h->at);

	if (ndx_negotiation_server_create(attr, &h->server) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	assert_int_equal(
		ndx_negotiation_server_get_address(h->server, (struct sockaddr *)&h->at, &length),
		NDX_OK);
	(void)snprintf(h->address, sizeof(h->address), "127.0.0.1:%u", ntohs(h->at.sin_port));
}

void host_open(struct host *h, const struct rig *r, const struct ndx_tls_attr *tls,
               uint32_t hello_ms)
{
	struct ndx_negotiation_server_attr attr;

	host_attr(r, tls, hello_ms, &attr);
	host_begin(h, &attr);
}

void host_close(struct host *h)
{
	ndx_negotiation_server_close(h->server);
}

void host_stats(const struct host *h, struct ndx_negotiation_server_stats *stats)
{
	stats->size = sizeof(*stats);
	assert_int_equal(ndx_negotiation_server_get_stats(h->server, stats), NDX_OK);
}

void host_await_empty(const struct host *h)
{
	struct ndx_negotiation_server_stats stats = {.alive = 1};

	for (int ms = 0; ms < WAIT_MS && stats.alive > 0; ms++) {
		host_stats(h, &stats);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(stats.alive, 0);
}

static int connected(const struct sockaddr_in *at)
{
	const struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(fd >= 0);
	(void)setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof(on));
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof(*at)), 0);
	return fd;
}

int host_join(const struct host *h)
{
	return connected(&h->at);
}

int host_join_from(const struct host *h, uint32_t address)
{
	const struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	const struct sockaddr_in from = {.sin_family = AF_INET,
	                                 .sin_addr = {.s_addr = htonl(address)}};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&h->at, sizeof(h->at)), 0);
	return fd;
}

void host_has_closed(int fd)
{
	uint8_t bytes[256];
	ssize_t n;

	do
		n = recv(fd, bytes, sizeof(bytes), 0);
	while (n > 0);
	assert_true(n == 0 || errno == ECONNRESET); /* not EAGAIN */
	(void)close(fd);
}

struct ndx_session *tls_session(struct rig *r, const char *address, const struct ndx_tls_attr *tls,
                                uint32_t connect_ms)
{
	struct ndx_session_attr attr;
	struct ndx_session *s;

	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = &address;
	attr.server_count = 1;
	attr.connect_timeout_ms = connect_ms;
	attr.backoff_ms = 8;
	attr.max_message = MESSAGE;
	attr.tls = tls;
	if (ndx_session_create(&attr, &s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	return s;
}

/* ---- threads ---- */

static void *run_some(void *arg)
{
	struct crowd *c = arg;

	for (unsigned i = 0; i < c->sessions; i++) {
		struct ndx_session_attr attr;
		struct ndx_session *s = NULL;
		const char *server = c->host->address;

		ndx_session_attr_init(&attr);
		attr.variant = c->rig->variant;
		attr.servers = &server;
		attr.server_count = 1;
		attr.max_message = MESSAGE;
		attr.tls = c->tls;
		if (ndx_session_create(&attr, &s) == NDX_OK && ndx_session_run(s) == NDX_OK)
			(void)__atomic_fetch_add(&c->passed, 1, __ATOMIC_RELAXED);
		ndx_session_close(s);
	}
	return NULL;
}

void crowd_start(struct crowd *c)
{
	assert_true(c->threads <= CROWD_MOST);
	for (unsigned i = 0; i < c->threads; i++)
		assert_int_equal(pthread_create(&c->handles[i], NULL, run_some, c), 0);
}

void crowd_end(struct crowd *c)
{
	for (unsigned i = 0; i < c->threads; i++)
		assert_int_equal(pthread_join(c->handles[i], NULL), 0);
	assert_int_equal(c->passed, c->threads * c->sessions);
}

/* ---- the log ---- */

static struct {
	pthread_mutex_t lock;
	char text[65536];
	size_t used;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_record(void *arg, const struct ndx_log_record *record)
{
	(void)arg;
	pthread_mutex_lock(&heard.lock);
	if (heard.used + strlen(record->text) + 2 < sizeof(heard.text))
		heard.used +=
			(size_t)snprintf(heard.text + heard.used, sizeof(heard.text) - heard.used,
		                         "%s\n", record->text);
	pthread_mutex_unlock(&heard.lock);
}

void log_begin(void)
{
	heard.used = 0;
	heard.text[0] = '\0';
	ndx_log_set_sink(on_record, NULL, NDX_LOG_INFO);
}

static bool has_both(const char *one, const char *two)
{
	const char *line = heard.text;

	while (*line != '\0') {
		const char *end = strchr(line, '\n');
		const char *first = strstr(line, one);
		const char *second = strstr(line, two);

		if (first != NULL && first < end && second != NULL && second < end)
			return true;
		line = end + 1;
	}
	return false;
}

void log_says(const char *one, const char *two)
{
	bool found = false;

	for (int ms = 0; ms < WAIT_MS / 4 && !found; ms++) {
		pthread_mutex_lock(&heard.lock);
		found = has_both(one, two);
		pthread_mutex_unlock(&heard.lock);
		if (!found)
			(void)poll(NULL, 0, 1);
	}
	if (!found)
		fail_msg("no record has \"%s\" and \"%s\":\n%s", one, two, heard.text);
}

unsigned log_count(const char *text)
{
	unsigned count = 0;

	pthread_mutex_lock(&heard.lock);
	for (const char *at = heard.text; (at = strstr(at, text)) != NULL; count++) {
		at = strchr(at, '\n');
		assert_non_null(at);
	}
	pthread_mutex_unlock(&heard.lock);
	return count;
}

void log_end(void)
{
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
}

/* ---- the proxy ---- */

/* False: this direction has ended. */
static bool forward(struct proxy *p, int from, int to, bool to_server)
{
	static const struct timespec pause = {.tv_nsec = 100000};
	uint8_t bytes[4096];
	const ssize_t n = recv(from, bytes, p->by_byte ? 1 : sizeof(bytes), 0);

	if (n <= 0)
		return false;
	if (to_server && (size_t)n <= sizeof(p->recorded) - p->recorded_length) {
		memcpy(p->recorded + p->recorded_length, bytes, (size_t)n);
		p->recorded_length += (size_t)n;
	}
	if (to_server && __atomic_exchange_n(&p->spoiled, 0, __ATOMIC_SEQ_CST) != 0)
		bytes[n - 1] ^= 1;
	if (send(to, bytes, (size_t)n, MSG_NOSIGNAL) != n)
		return false;
	if (p->by_byte)
		(void)ppoll(NULL, 0, &pause, NULL); /* the receiver is to read it alone */
	return true;
}

static void relay(struct proxy *p, int client)
{
	const int server = connected(&p->to);
	struct pollfd set[3] = {{.fd = client, .events = POLLIN},
	                        {.fd = server, .events = POLLIN},
	                        {.fd = p->stop, .events = POLLIN}};
	bool on = true;

	while (on && __atomic_exchange_n(&p->cut, 0, __ATOMIC_SEQ_CST) == 0) {
		(void)poll(set, 3, 5);
		on = set[2].revents == 0;
		if (on && set[0].revents != 0)
			on = forward(p, client, server, true);
		if (on && set[1].revents != 0)
			on = forward(p, server, client, false);
	}
	(void)close(server);
	(void)close(client);
}

static void *proxy_main(void *arg)
{
	struct proxy *p = arg;

	for (;;) {
		struct pollfd set[2] = {{.fd = p->fd, .events = POLLIN},
		                        {.fd = p->stop, .events = POLLIN}};
		int fd;

		(void)poll(set, 2, -1);
		if (set[1].revents != 0)
			return NULL;
		fd = accept(p->fd, NULL, NULL);
		if (fd >= 0)
			relay(p, fd);
	}
}

void proxy_start(struct proxy *p, const struct host *to, bool by_byte)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(at);

	memset(p, 0, sizeof(*p));
	p->to = to->at;
	p->by_byte = by_byte;
	p->stop = ndxp_eventfd_create();
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(p->fd >= 0 && p->stop >= 0);
	assert_int_equal(bind(p->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(p->fd, 16), 0);
	assert_int_equal(getsockname(p->fd, (struct sockaddr *)&at, &length), 0);
	(void)snprintf(p->address, sizeof(p->address), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&p->thread, NULL, proxy_main, p), 0);
}

void proxy_stop(struct proxy *p)
{
	ndxp_eventfd_set(p->stop);
	assert_int_equal(pthread_join(p->thread, NULL), 0);
	(void)close(p->fd);
	(void)close(p->stop);
}
