# SPDX-License-Identifier: BSD-2-Clause
# find_package(ndx 0.1 COMPONENTS negotiation stream reassembly provider): ndx::ndx, and one target for
# each component; ndx::provider is for a provider in a file of its own. A component brings the libraries below it.
include(${CMAKE_CURRENT_LIST_DIR}/ndx-targets.cmake)
foreach(component IN LISTS ndx_FIND_COMPONENTS)
  if(component MATCHES "^(ndx|negotiation|provider|reassembly|stream)$")
    if(NOT component STREQUAL "ndx")
      include(${CMAKE_CURRENT_LIST_DIR}/ndx-${component}-targets.cmake)
    endif()
    set(ndx_${component}_FOUND TRUE)
  else()
    set(ndx_${component}_FOUND FALSE)
    if(ndx_FIND_REQUIRED_${component})
      set(ndx_FOUND FALSE)
      set(ndx_NOT_FOUND_MESSAGE
        "NDX has no component ${component}; it has ndx, negotiation, provider, reassembly and stream.")
    endif()
  endif()
endforeach()
