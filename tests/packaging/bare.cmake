# SPDX-License-Identifier: BSD-2-Clause
# usage: cmake -P bare.cmake FILE...
# Take the run paths out: what lies in the folder of the system's libraries needs none.
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 3 ${last})
  file(RPATH_REMOVE FILE "${CMAKE_ARGV${i}}")
endforeach()
