# SPDX-License-Identifier: BSD-2-Clause
# usage: cmake -P bare.cmake FILE...
# Take the run paths out: what lies in the folder of the system's libraries needs none. A module whose
# part stands beside it (libndx-early of ndx-provider-ofi) finds that by $ORIGIN.
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 3 ${last})
  if(NOT "${CMAKE_ARGV${i}}" MATCHES "/ndx/ndx-provider-")
    file(RPATH_REMOVE FILE "${CMAKE_ARGV${i}}")
  endif()
endforeach()
