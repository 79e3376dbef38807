/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting lists: functions of struct ndx_qp_ops. */
#ifndef VERBS_POST_LIST_H
#define VERBS_POST_LIST_H

#include "verbs.h"

enum ndx_status verbs_qp_post_list(struct ndx_qp *pub, const struct ndx_request *list, size_t size,
                                   size_t count, size_t *posted);
enum ndx_status verbs_qp_receive_list(struct ndx_qp *pub, const struct ndx_receive *list,
                                      size_t size, size_t count, size_t *posted);

#endif
