/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of an adapter's URI, and what is found by them: addresses, and libfabric's
 * descriptions (ofi_info.c, ofi_options.c, tcp/, verbs/). */
#ifndef OFI_OFI_INFO_H
#define OFI_OFI_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rdma/fabric.h>

#include <ndx/spi/provider.h>

struct ifaddrs;
struct ofi_backend;

enum ofi_cq_choice { OFI_CQ_AUTO, OFI_CQ_PRIVATE, OFI_CQ_SHARED };

/* The options of the URI. */
struct ofi_options {
	const struct ofi_backend *backend;
	char iface[32];                  /* "" if not given */
	struct sockaddr_storage address; /* AF_UNSPEC if not given */
	bool lan;                        /* trust=lan: peers on other hosts are trusted */
	bool any_user;                   /* peers=any: not only the own user and root may connect */
	bool peers_named;                /* the URI or the configuration has peers= */
	enum ofi_cq_choice cq;
};

extern const struct ndx_spi_key ofi_keys[];

enum ndx_status ofi_parse_options(const struct ndx_spi_open *how, struct ofi_options *out);
/* The addresses that match the options; the caller frees *list. */
enum ndx_status ofi_find_addresses(const struct ofi_options *options,
                                   struct sockaddr_storage **list, size_t *count);
/* The same among `all`. */
enum ndx_status ofi_find_addresses_in(const struct ifaddrs *all, const struct ofi_options *options,
                                      struct sockaddr_storage **list, size_t *count);
/* libfabric's description of an endpoint of this back end at a local address. */
enum ndx_status ofi_get_info(const struct ofi_backend *backend,
                             const struct sockaddr_storage *address, struct fi_info **out);
/* The address of an interface that is up. False: it has none that can be used. */
bool ofi_usable_address(const struct ifaddrs *i, struct sockaddr_storage *out);
/* For enumeration: is `i` the first of `all` that has a usable address of its interface? */
bool ofi_begins_interface(const struct ifaddrs *all, const struct ifaddrs *i,
                          struct sockaddr_storage *out);
/* The options of a URI of this back end with the interface of `i`. */
struct ofi_options ofi_options_of_interface(const struct ofi_options *defaults,
                                            const struct ofi_backend *backend,
                                            const struct ifaddrs *i);
/* The same number at every open, and different numbers for different devices. */
uint64_t ofi_adapter_id(const struct ofi_options *options);
/* A copy with these addresses; NULL removes an address. The caller frees the copy; NULL: out of
 * memory. */
struct fi_info *ofi_dup_info(const struct fi_info *info, const struct sockaddr_storage *source,
                             const struct sockaddr_storage *destination);
enum ndx_status ofi_list(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                         ndx_spi_list_fn *each, void *arg);
void ofi_describe(const struct ofi_options *options, struct ndx_adapter_info *info);

#endif
