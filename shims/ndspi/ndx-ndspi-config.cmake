# SPDX-License-Identifier: BSD-2-Clause
# find_package(ndx-ndspi 0.1 [COMPONENTS winrt]): the targets of find_package(ndx 0.1 COMPONENTS ndspi
# [winrt]), of the same installation: ndx::ndspi; with winrt also ndx::winrt and ndx::wmain.
include(${CMAKE_CURRENT_LIST_DIR}/../ndx/ndx-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/../ndx/ndx-ndspi-targets.cmake)
foreach(component IN LISTS ndx-ndspi_FIND_COMPONENTS)
  if(component MATCHES "^(ndspi|winrt)$")
    include(${CMAKE_CURRENT_LIST_DIR}/../ndx/ndx-${component}-targets.cmake)
    set(ndx-ndspi_${component}_FOUND TRUE)
  else()
    set(ndx-ndspi_${component}_FOUND FALSE)
    if(ndx-ndspi_FIND_REQUIRED_${component})
      set(ndx-ndspi_FOUND FALSE)
      set(ndx-ndspi_NOT_FOUND_MESSAGE
        "ndx-ndspi has no component ${component}; it has ndspi and winrt.")
    endif()
  endif()
endforeach()
