/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * How the functions of the provider kit are linked.
 *
 * The kit is what providers share: locks, lists, addresses, the halves of queues that no stack
 * decides. Its names begin with ndxp_. A provider links libndx-provider.a, so it has the kit's code
 * of its own build; what the whole process shares (log, last error, control loops, overlapped
 * operations) its functions reach through struct ndx_spi_services. Of its structures only those of
 * <ndx/spi/loop.h>, and the link of <ndx/spi/overlapped_list.h>, are part of the binary interface.
 */
#ifndef NDX_SPI_SHARED_H
#define NDX_SPI_SHARED_H

/**
 * NDXP_IN_LIBNDX is for the build of NDX itself: libndx-negotiation and libndx-stream call these
 * functions in libndx. For a provider they are functions like all others.
 */
#ifdef NDXP_IN_LIBNDX
#define NDXP_SHARED __attribute__((visibility("default")))
#else
#define NDXP_SHARED
#endif

/** C linkage for the functions of a header, for providers in C++. */
#ifdef __cplusplus
#define NDXP_DECLS_BEGIN extern "C" {
#define NDXP_DECLS_END }
#else
#define NDXP_DECLS_BEGIN
#define NDXP_DECLS_END
#endif

#endif
