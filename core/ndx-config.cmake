# SPDX-License-Identifier: BSD-2-Clause
# find_package(ndx 0.1 COMPONENTS negotiation stream reassembly provider ndspi winrt): ndx::ndx, and one
# target for each component; ndx::provider is for a provider in a file of its own, ndx::ndspi and
# ndx::winrt for NetworkDirect programs of Windows. A component brings the libraries below it.
include(${CMAKE_CURRENT_LIST_DIR}/ndx-targets.cmake)
foreach(component IN LISTS ndx_FIND_COMPONENTS)
  if(component MATCHES "^(ndx|ndspi|negotiation|provider|reassembly|stream|winrt)$")
    if(component STREQUAL "winrt")
      include(${CMAKE_CURRENT_LIST_DIR}/ndx-ndspi-targets.cmake)
    endif()
    if(NOT component STREQUAL "ndx")
      include(${CMAKE_CURRENT_LIST_DIR}/ndx-${component}-targets.cmake)
    endif()
    set(ndx_${component}_FOUND TRUE)
  else()
    set(ndx_${component}_FOUND FALSE)
    if(ndx_FIND_REQUIRED_${component})
      set(ndx_FOUND FALSE)
      set(ndx_NOT_FOUND_MESSAGE
        "NDX has no component ${component}; it has ndx, ndspi, negotiation, provider, reassembly, stream and winrt.")
    endif()
  endif()
endforeach()
