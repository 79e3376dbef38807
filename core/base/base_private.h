/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_PRIVATE_H
#define BASE_PRIVATE_H

/*
 * What the libraries above libndx (libndx-negotiation, libndx-stream) use of its inside, so that
 * the sink of the log, the text of the last error and the threads of the control loops exist once
 * in a process. No other library and no program may call these functions: they change with every
 * version. core/private.map lists them in a version node whose name contains the full version, so
 * that the dynamic linker refuses a library of another version.
 *
 * NDX_PRIVATE(its name) follows the declaration of such a function. The function becomes visible
 * under a name that begins with ndx_private_. Under its own name, a program's function of the same
 * name would take its place: the dynamic linker searches the program first.
 */
#define NDX_PRIVATE(name) __asm__("ndx_private_" #name) __attribute__((visibility("default")))

#endif
