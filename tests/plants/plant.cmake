# SPDX-License-Identifier: BSD-2-Clause
# ndx_plant(FAULT ROOM): the object library planted_FAULT, made of the files of ROOM that FAULT.patch
# changes, with the fault in them. A program that is linked with these objects and with ndx_testable
# has the fault: the linker takes no member of an archive whose symbols the program has already.
set(NDX_PLANTS ${CMAKE_CURRENT_LIST_DIR})
find_program(NDX_PATCH patch)
if(NOT NDX_PATCH)
  message(WARNING "patch not found: the tests that must notice planted faults are left out. Install "
    "patch.")
  add_test(NAME planted COMMAND sh -c "echo 'skip: patch was not found'; exit 77")
  set_tests_properties(planted PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
endif()

function(ndx_plant fault room)
  set(patch ${NDX_PLANTS}/${fault}.patch)
  set(out ${PROJECT_BINARY_DIR}/plants/${fault})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${patch})
  file(STRINGS ${patch} files REGEX "^\\+\\+\\+ b/[^ \t]+")
  list(TRANSFORM files REPLACE "^[^/]*/([^ \t]+).*$" "\\1")
  set(originals)
  set(copies)
  set(folders)
  foreach(file IN LISTS files)
    # Only the files of the patch are compiled anew, not all that include a header of the patch.
    if(NOT file MATCHES "\\.c$")
      message(FATAL_ERROR "${patch} changes ${file}: a planted fault changes .c files only")
    endif()
    get_filename_component(folder ${PROJECT_SOURCE_DIR}/${file} DIRECTORY)
    list(APPEND originals ${PROJECT_SOURCE_DIR}/${file})
    list(APPEND copies ${out}/${file})
    list(APPEND folders ${folder})
  endforeach()
  add_custom_command(OUTPUT ${copies}
    COMMAND sh ${NDX_PLANTS}/plant.sh ${PROJECT_SOURCE_DIR} ${patch} ${out}
    DEPENDS ${NDX_PLANTS}/plant.sh ${patch} ${originals} VERBATIM)
  add_library(planted_${fault} OBJECT ${copies})
  # A header in quotes lies beside the original.
  target_include_directories(planted_${fault} PRIVATE ${folders})
  target_compile_definitions(planted_${fault} PRIVATE
    $<TARGET_PROPERTY:${room},COMPILE_DEFINITIONS>)
  target_link_libraries(planted_${fault} PRIVATE $<TARGET_PROPERTY:${room},LINK_LIBRARIES>)
endfunction()
