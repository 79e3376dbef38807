/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * The old names for the same purpose as those of sal.h; they stand for nothing, too.
 *
 * `__reserved` is missing: structures of the Linux kernel have members of that name.
 *
 * The C++ library has parameters of the names __in and __out, so this header first includes all of
 * its headers: those that a program includes afterwards are then empty.
 */
#ifndef NDX_SPECSTRINGS_H
#define NDX_SPECSTRINGS_H

#ifdef __cplusplus
extern "C++" {
#if __has_include(<bits/stdc++.h>)
#include <bits/stdc++.h>
#else
#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>
#endif
} // extern "C++"
#endif
#include "sal.h"

/* ---- names without an argument ---- */

#define __checkReturn
#define __deref
#define __deref_in
#define __deref_in_opt
#define __deref_inout
#define __deref_inout_opt
#define __deref_inout_z
#define __deref_opt_in
#define __deref_opt_in_opt
#define __deref_opt_inout
#define __deref_opt_inout_opt
#define __deref_opt_out
#define __deref_opt_out_opt
#define __deref_out
#define __deref_out_opt
#define __deref_out_z
#define __deref_out_z_opt
#define __format_string
#define __in
#define __in_opt
#define __in_z
#define __in_z_opt
#define __inout
#define __inout_opt
#define __inout_z
#define __inout_z_opt
#define __maybenull
#define __notnull
#define __notvalid
#define __nullnullterminated
#define __nullterminated
#define __out
#define __out_opt
#define __out_z
#define __override
#define __post
#define __pre
#define __refparam
#define __valid

/* ---- names with arguments ---- */

#define __assume_bound(...)
#define __bcount(...)
#define __bcount_opt(...)
#define __byte_readableTo(...)
#define __control_entrypoint(...)
#define __data_entrypoint(...)
#define __deref_in_bcount(...)
#define __deref_in_bcount_opt(...)
#define __deref_in_ecount(...)
#define __deref_in_ecount_opt(...)
#define __deref_in_range(...)
#define __deref_inout_bcount(...)
#define __deref_inout_bcount_full(...)
#define __deref_inout_bcount_full_opt(...)
#define __deref_inout_bcount_opt(...)
#define __deref_inout_bcount_part(...)
#define __deref_inout_bcount_part_opt(...)
#define __deref_inout_ecount(...)
#define __deref_inout_ecount_full(...)
#define __deref_inout_ecount_full_opt(...)
#define __deref_inout_ecount_opt(...)
#define __deref_inout_ecount_part(...)
#define __deref_inout_ecount_part_opt(...)
#define __deref_opt_in_bcount(...)
#define __deref_opt_in_bcount_opt(...)
#define __deref_opt_in_ecount(...)
#define __deref_opt_in_ecount_opt(...)
#define __deref_opt_inout_bcount(...)
#define __deref_opt_inout_bcount_full(...)
#define __deref_opt_inout_bcount_full_opt(...)
#define __deref_opt_inout_bcount_opt(...)
#define __deref_opt_inout_bcount_part(...)
#define __deref_opt_inout_bcount_part_opt(...)
#define __deref_opt_inout_ecount(...)
#define __deref_opt_inout_ecount_full(...)
#define __deref_opt_inout_ecount_full_opt(...)
#define __deref_opt_inout_ecount_opt(...)
#define __deref_opt_inout_ecount_part(...)
#define __deref_opt_inout_ecount_part_opt(...)
#define __deref_opt_out_bcount(...)
#define __deref_opt_out_bcount_full(...)
#define __deref_opt_out_bcount_full_opt(...)
#define __deref_opt_out_bcount_opt(...)
#define __deref_opt_out_bcount_part(...)
#define __deref_opt_out_bcount_part_opt(...)
#define __deref_opt_out_ecount(...)
#define __deref_opt_out_ecount_full(...)
#define __deref_opt_out_ecount_full_opt(...)
#define __deref_opt_out_ecount_opt(...)
#define __deref_opt_out_ecount_part(...)
#define __deref_opt_out_ecount_part_opt(...)
#define __deref_out_bcount(...)
#define __deref_out_bcount_full(...)
#define __deref_out_bcount_full_opt(...)
#define __deref_out_bcount_opt(...)
#define __deref_out_bcount_part(...)
#define __deref_out_bcount_part_opt(...)
#define __deref_out_ecount(...)
#define __deref_out_ecount_full(...)
#define __deref_out_ecount_full_opt(...)
#define __deref_out_ecount_opt(...)
#define __deref_out_ecount_part(...)
#define __deref_out_ecount_part_opt(...)
#define __deref_out_range(...)
#define __ecount(...)
#define __ecount_opt(...)
#define __elem_readableTo(...)
#define __field_bcount(...)
#define __field_bcount_opt(...)
#define __field_bcount_part(...)
#define __field_ecount(...)
#define __field_ecount_opt(...)
#define __field_ecount_part(...)
#define __field_range(...)
#define __in_bcount(...)
#define __in_bcount_opt(...)
#define __in_bound(...)
#define __in_ecount(...)
#define __in_ecount_opt(...)
#define __in_ecount_z(...)
#define __in_ecount_z_opt(...)
#define __in_range(...)
#define __inout_bcount(...)
#define __inout_bcount_full(...)
#define __inout_bcount_full_opt(...)
#define __inout_bcount_opt(...)
#define __inout_bcount_part(...)
#define __inout_bcount_part_opt(...)
#define __inout_ecount(...)
#define __inout_ecount_full(...)
#define __inout_ecount_full_opt(...)
#define __inout_ecount_opt(...)
#define __inout_ecount_part(...)
#define __inout_ecount_part_opt(...)
#define __inout_ecount_z(...)
#define __inout_ecount_z_opt(...)
#define __out_bcount(...)
#define __out_bcount_full(...)
#define __out_bcount_full_opt(...)
#define __out_bcount_opt(...)
#define __out_bcount_part(...)
#define __out_bcount_part_opt(...)
#define __out_bound(...)
#define __out_ecount(...)
#define __out_ecount_full(...)
#define __out_ecount_full_opt(...)
#define __out_ecount_opt(...)
#define __out_ecount_part(...)
#define __out_ecount_part_opt(...)
#define __out_ecount_z(...)
#define __out_ecount_z_opt(...)
#define __out_range(...)
#define __range(...)
#define __readableTo(...)
#define __struct_bcount(...)
#define __success(...)
#define __typefix(...)
#define __writableTo(...)

#endif
