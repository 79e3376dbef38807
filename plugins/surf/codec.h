/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metadata bus of the FPGA's RoCE engine, generation 1: requests and responses as bits. A
 * request has 303 bits, a response 276. The type is in the top two bits. Below it the fields of a
 * message follow each other, highest first, so that the last one ends at bit 0. Word 0 has bits 31
 * to 0.
 *
 *   request   PD  65 bits    alloc, key, handler
 *             MR 264 bits    alloc, the region, by_lkey, lkey, rkey
 *             QP 301 bits    request, pd_handler, qpn, attr_mask, the attributes: uses all bits
 *   response  PD  65 bits    ok, handler, key
 *             MR 263 bits    ok, the region, lkey, rkey
 *             QP 274 bits    ok, qpn, pd_handler, the attributes
 *
 * Every value of the bus is a uint64_t here, so that a value that is too wide is detected and never
 * truncated.
 */
#ifndef SURF_CODEC_H
#define SURF_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/status.h>

#define SURF_REQUEST_BITS 303u
#define SURF_REQUEST_WORDS 10u
#define SURF_RESPONSE_BITS 276u
#define SURF_RESPONSE_WORDS 9u

enum surf_type {
	SURF_PD = 0,
	SURF_MR = 1,
	SURF_QP = 2,
};

enum surf_qp_request {
	SURF_QP_CREATE = 0,
	SURF_QP_DESTROY = 1,
	SURF_QP_MODIFY = 2,
};

/* The numbers are those of ibverbs. */
enum surf_qp_state {
	SURF_RESET = 0,
	SURF_INIT = 1,
	SURF_RTR = 2,
	SURF_RTS = 3,
	SURF_SQD = 4,
	SURF_ERR = 6,
	SURF_CREATED = 8,
};

/* The attributes that a modification sets. The numbers are those of ibverbs. */
enum surf_attr {
	SURF_ATTR_STATE = 1,
	SURF_ATTR_ACCESS = 8,
	SURF_ATTR_PKEY_INDEX = 16,
	SURF_ATTR_PATH_MTU = 256,
	SURF_ATTR_TIMEOUT = 512,
	SURF_ATTR_RETRY_COUNT = 1024,
	SURF_ATTR_RNR_RETRY = 2048,
	SURF_ATTR_RQ_PSN = 4096,
	SURF_ATTR_MAX_RD_ATOMIC = 8192,
	SURF_ATTR_MIN_RNR_TIMER = 32768,
	SURF_ATTR_SQ_PSN = 65536,
	SURF_ATTR_MAX_DEST_RD_ATOMIC = 131072,
	SURF_ATTR_DEST_QPN = 1048576,
};

/* Each struct has its fields in the order of the bus; the comments have their width in bits. */

struct surf_region {
	uint64_t laddr;      /* 64 */
	uint64_t length;     /* 32 */
	uint64_t access;     /*  8 */
	uint64_t pd_handler; /* 32 */
	uint64_t lkey_part;  /* 31 */
	uint64_t rkey_part;  /* 31 */
};

struct surf_attributes {
	uint64_t state;          /*  4 */
	uint64_t current_state;  /*  4 */
	uint64_t pmtu;           /*  3 */
	uint64_t qkey;           /* 32 */
	uint64_t rq_psn;         /* 24 */
	uint64_t sq_psn;         /* 24 */
	uint64_t dest_qpn;       /* 24 */
	uint64_t access;         /*  8 */
	uint64_t cap;            /* 40 */
	uint64_t pkey;           /* 16 */
	uint64_t sq_draining;    /*  1 */
	uint64_t max_rd_atomic;  /*  8 */
	uint64_t max_dest_rd;    /*  8 */
	uint64_t min_rnr_timer;  /*  5 */
	uint64_t timeout;        /*  5 */
	uint64_t retry_count;    /*  3 */
	uint64_t rnr_retry;      /*  3 */
	uint64_t type;           /*  4 */
	uint64_t sq_signals_all; /*  1 */
};

struct surf_pd_request {
	uint64_t alloc;   /*  1; 0: free */
	uint64_t key;     /* 32 */
	uint64_t handler; /* 32 */
};

struct surf_mr_request {
	uint64_t alloc; /*  1; 0: free */
	struct surf_region region;
	uint64_t by_lkey; /*  1 */
	uint64_t lkey;    /* 32 */
	uint64_t rkey;    /* 32 */
};

struct surf_qp_message {
	uint64_t request;    /*  2; enum surf_qp_request */
	uint64_t pd_handler; /* 32 */
	uint64_t qpn;        /* 24 */
	uint64_t attr_mask;  /* 26; enum surf_attr */
	struct surf_attributes attributes;
};

struct surf_request {
	enum surf_type type; /* which member of the union */
	struct surf_pd_request pd;
	struct surf_mr_request mr;
	struct surf_qp_message qp;
};

struct surf_pd_response {
	uint64_t ok;
	uint64_t handler;
	uint64_t key;
};

struct surf_mr_response {
	uint64_t ok;
	struct surf_region region;
	uint64_t lkey;
	uint64_t rkey;
};

struct surf_qp_response {
	uint64_t ok;
	uint64_t qpn;
	uint64_t pd_handler;
	struct surf_attributes attributes; /* state is the actual one, also if not ok */
};

struct surf_response {
	enum surf_type type; /* which member of the union */
	struct surf_pd_response pd;
	struct surf_mr_response mr;
	struct surf_qp_response qp;
};

const char *surf_type_name(enum surf_type type);
const char *surf_state_name(uint64_t state);

/*
 * NDX_E_INVALID_PARAMETER: a value is wider than its field; *why names the field, the value and the
 * width, and *words is untouched.
 */
enum ndx_status surf_request_encode(const struct surf_request *request,
                                    uint32_t words[SURF_REQUEST_WORDS], char *why, size_t room);
enum ndx_status surf_response_encode(const struct surf_response *response,
                                     uint32_t words[SURF_RESPONSE_WORDS], char *why, size_t room);

/*
 * NDX_E_REMOTE_ERROR: unknown type; *why says so, and *out is untouched. Bits above the width of
 * the bus, and between the type and the first field, are ignored.
 */
enum ndx_status surf_request_decode(const uint32_t words[SURF_REQUEST_WORDS],
                                    struct surf_request *out, char *why, size_t room);
enum ndx_status surf_response_decode(const uint32_t words[SURF_RESPONSE_WORDS],
                                     struct surf_response *out, char *why, size_t room);

#endif
