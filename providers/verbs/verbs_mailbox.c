/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mailboxes: fields that the peer writes when a connection ends. Registering memory is expensive,
 * so many mailboxes share a region. The number of the owner's queue pair, which the peer knows,
 * tells the place of its mailbox in the region. The value to write follows from the first PSNs of
 * both directions: they are random, and only the two ends know them. So no peer can write the value
 * of another one.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ndx/spi/log.h>
#include "verbs_mailbox.h"

#define BOXES 64u /* mailboxes in a region */
/* Behind them: memory for a packet of the longest path MTU, whose content is garbage. */
#define PACKET_AT ((size_t)BOXES * VERBS_FIELDS * sizeof(uint64_t))
#define PACKET_MAX 4096u

struct verbs_mailboxes {
	struct ndxp_list node; /* in verbs_adapter.mailboxes */
	struct ibv_mr *mr;
	uint8_t *packet; /* zeros, the source of packets; no peer may write here */
	struct ibv_mr *packet_mr;
	uint64_t used; /* one bit for each mailbox */
	uint64_t *words;
};

static void free_region(struct verbs_mailboxes *region)
{
	if (region->packet_mr != NULL && ibv_dereg_mr(region->packet_mr) != 0)
		log_warn(errno, "ibv_dereg_mr: %s", strerror(errno));
	if (region->mr != NULL && ibv_dereg_mr(region->mr) != 0)
		log_warn(errno, "ibv_dereg_mr: %s", strerror(errno));
	free(region->packet);
	free(region->words);
	free(region);
}

/* NULL: `*st` has the error. */
static struct verbs_mailboxes *add_region(struct verbs_adapter *adapter, enum ndx_status *st)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t size = PACKET_AT + PACKET_MAX;
	struct verbs_mailboxes *region = calloc(1, sizeof(*region));

	if (region == NULL)
		goto no_memory;
	region->words = aligned_alloc(page, (size + page - 1) / page * page);
	region->packet = calloc(1, PACKET_MAX);
	if (region->words == NULL || region->packet == NULL)
		goto no_memory;
	memset((uint8_t *)region->words + PACKET_AT, 0, PACKET_MAX);
	/* at address 0, so that the peer needs only the key; that takes whole pages */
	region->mr = ibv_reg_mr_iova(adapter->pd, region->words, size, 0,
	                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (region->mr != NULL)
		region->packet_mr = ibv_reg_mr(adapter->pd, region->packet, PACKET_MAX, 0);
	if (region->packet_mr == NULL) {
		const int err = errno;

		*st = fail(verbs_refusal(adapter, err), err,
		           "connect: no region for the goodbye: ibv_reg_mr: %s; see ulimit -l",
		           strerror(err));
		free_region(region);
		return NULL;
	}
	ndxp_list_add(&adapter->mailboxes, &region->node);
	return region;

no_memory:
	if (region != NULL)
		free_region(region);
	*st = fail(NDX_E_NO_MEMORY, ENOMEM, "connect: no memory for the goodbye");
	return NULL;
}

static uint32_t box_of(uint32_t qp_num)
{
	return qp_num % BOXES;
}

enum ndx_status verbs_mailbox_open(struct verbs_conn *conn)
{
	struct verbs_adapter *adapter = conn->adapter;
	const uint32_t box = box_of(verbs_qp_of(conn->spi.qp)->native->qp_num);
	struct verbs_mailboxes *region = NULL;
	enum ndx_status st = NDX_OK;

	for (struct ndxp_list *n = adapter->mailboxes.next; n != &adapter->mailboxes; n = n->next) {
		region = container_of(n, struct verbs_mailboxes, node);
		if ((region->used & (UINT64_C(1) << box)) == 0)
			break;
		region = NULL;
	}
	if (region == NULL)
		region = add_region(adapter, &st);
	if (region == NULL)
		return st;
	region->used |= UINT64_C(1) << box;
	conn->mailboxes = region;
	conn->mailbox_mr = region->mr;
	conn->mailbox = region->words + (size_t)box * VERBS_FIELDS;
	memset(conn->mailbox, 0, VERBS_FIELDS * sizeof(*conn->mailbox));
	return NDX_OK;
}

void verbs_mailbox_close(struct verbs_conn *conn)
{
	struct verbs_mailboxes *region = conn->mailboxes;

	if (region == NULL)
		return;
	region->used &= ~(UINT64_C(1) << (size_t)(conn->mailbox - region->words) / VERBS_FIELDS);
	conn->mailboxes = NULL;
	conn->mailbox_mr = NULL;
	conn->mailbox = NULL;
}

void verbs_mailbox_close_all(struct verbs_adapter *adapter)
{
	for (struct ndxp_list *n = adapter->mailboxes.next; n != &adapter->mailboxes;) {
		struct verbs_mailboxes *region = container_of(n, struct verbs_mailboxes, node);

		n = n->next;
		free_region(region);
	}
	ndxp_list_init(&adapter->mailboxes);
}

/* The value that an end writes into the mailbox of the end whose first PSN is `from`. */
static uint64_t secret(uint32_t from, uint32_t to)
{
	return htobe64(UINT64_C(1) << 63 | (uint64_t)from << 24 | to);
}

bool verbs_mailbox_has(const struct verbs_conn *conn, enum verbs_field which)
{
	const struct verbs_numbers *path = &conn->qp->path;

	return __atomic_load_n(&conn->mailbox[which], __ATOMIC_ACQUIRE) ==
	       secret(path->own_psn, path->peer_psn);
}

static struct verbs_ctrl_write write_field(const struct verbs_conn *conn, enum verbs_field which,
                                           uint64_t value)
{
	const size_t own = (size_t)(conn->mailbox - conn->mailboxes->words) + VERBS_FIELD_OWN;
	const size_t there = (size_t)box_of(conn->qp->path.peer_number) * VERBS_FIELDS + which;

	__atomic_store_n(&conn->mailbox[VERBS_FIELD_OWN], value, __ATOMIC_RELEASE);
	return (struct verbs_ctrl_write){
		.length = sizeof(uint64_t),
		.lkey = conn->mailbox_mr->lkey,
		.rkey = conn->peer.mailbox_key,
		.from = own * sizeof(uint64_t),
		.to = there * sizeof(uint64_t),
	};
}

struct verbs_ctrl_write verbs_mailbox_write(const struct verbs_conn *conn, enum verbs_field which)
{
	const struct verbs_numbers *path = &conn->qp->path;

	return write_field(conn, which, secret(path->peer_psn, path->own_psn));
}

struct verbs_ctrl_write verbs_mailbox_proof(const struct verbs_conn *conn, enum verbs_field which,
                                            uint64_t value)
{
	return write_field(conn, which, htobe64(value));
}

bool verbs_mailbox_proves(const struct verbs_conn *conn, enum verbs_field which, uint64_t value)
{
	return __atomic_load_n(&conn->mailbox[which], __ATOMIC_ACQUIRE) == htobe64(value);
}

/*
 * Some networks drop a request without bytes, so a probe has one byte. The second byte of each
 * field is 0, whatever the value of the field is: see secret(). Writing that byte again does not
 * change the field.
 */
struct verbs_ctrl_write verbs_mailbox_noop(const struct verbs_conn *conn)
{
	const uint32_t there =
		box_of(conn->qp->path.peer_number) * VERBS_FIELDS + VERBS_FIELD_PROBED;
	size_t own;

	if (conn->mailboxes == NULL || conn->peer.mailbox_key == 0)
		return (struct verbs_ctrl_write){.length = 0};
	own = (size_t)(conn->mailbox - conn->mailboxes->words) + VERBS_FIELD_OWN;
	return (struct verbs_ctrl_write){
		.length = 1,
		.lkey = conn->mailbox_mr->lkey,
		.rkey = conn->peer.mailbox_key,
		.from = own * sizeof(uint64_t) + 1,
		.to = there * sizeof(uint64_t) + 1,
	};
}

struct verbs_ctrl_write verbs_mailbox_packet(const struct verbs_conn *conn, uint32_t length)
{
	return (struct verbs_ctrl_write){
		.length = length < PACKET_MAX ? length : PACKET_MAX,
		.lkey = conn->mailboxes->packet_mr->lkey,
		.rkey = conn->peer.mailbox_key,
		.from = (uintptr_t)conn->mailboxes->packet,
		.to = PACKET_AT,
	};
}
