/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What connecting shows of the path. The request and the answer are messages of the connection
 * manager; READY and HELLO go through the queue pairs and are as long as a packet. They come in
 * this order: request, answer, READY, HELLO. The first one that does not arrive tells the
 * direction.
 */
#include "ofi.h"
#include "ofi_conn.h"

void ofi_prove_begin(struct ofi_conn *conn)
{
	__atomic_store_n(&conn->written, NDX_PROVED_NOTHING, __ATOMIC_RELAXED);
	__atomic_store_n(&conn->seen, NDX_PROVED_NOTHING, __ATOMIC_RELAXED);
}

void ofi_prove_seen(struct ofi_conn *conn, enum ndx_spi_proved how)
{
	if (conn != NULL)
		__atomic_store_n(&conn->seen, how, __ATOMIC_RELAXED);
}

void ofi_prove_written(struct ofi_conn *conn)
{
	if (conn != NULL)
		__atomic_store_n(&conn->written, NDX_PROVED_WHOLE, __ATOMIC_RELAXED);
}

enum ndx_status ofi_conn_prove(struct ndx_spi_conn *spi, uint64_t write, uint64_t expect,
                               struct ndx_spi_proof *proof)
{
	const struct ofi_conn *conn = ofi_conn_of(spi);

	(void)write;
	(void)expect;
	if (!conn->adapter->backend->proves)
		return NDX_E_NOT_SUPPORTED;
	if (proof == NULL)
		return NDX_OK;
	*proof = (struct ndx_spi_proof){
		.written = (enum ndx_spi_proved)__atomic_load_n(&conn->written, __ATOMIC_RELAXED),
		.seen = (enum ndx_spi_proved)__atomic_load_n(&conn->seen, __ATOMIC_RELAXED),
	};
	proof->status = proof->written == NDX_PROVED_WHOLE ? NDX_OK : NDX_PENDING;
	return NDX_OK;
}
