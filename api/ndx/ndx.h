/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Includes all headers of applications: all but those of providers and plugins (spi). Each header
 * that belongs to another library than libndx names its library.
 */
#ifndef NDX_NDX_H
#define NDX_NDX_H

#include <ndx/adapter.h>
#include <ndx/connector.h>
#include <ndx/cq.h>
#include <ndx/description.h>
#include <ndx/event.h>
#include <ndx/frame.h>
#include <ndx/helpers.h>
#include <ndx/list.h>
#include <ndx/listener.h>
#include <ndx/log.h>
#include <ndx/mr.h>
#include <ndx/negotiation.h>
#include <ndx/negotiation_server.h>
#include <ndx/overlapped.h>
#include <ndx/qp.h>
#include <ndx/query.h>
#include <ndx/reassembly.h>
#include <ndx/reassembly_parts.h>
#include <ndx/receiver.h>
#include <ndx/sender.h>
#include <ndx/session.h>
#include <ndx/session_manager.h>
#include <ndx/sge.h>
#include <ndx/srq.h>
#include <ndx/stats.h>
#include <ndx/status.h>
#include <ndx/tls.h>
#include <ndx/version.h>

#endif
