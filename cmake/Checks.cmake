# Tests that look at the sources instead of running them.

if(NOT HAPAX_TESTS OR HAPAX_FUZZ)
  return()
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)

function(hapax_check name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS tidy)
endfunction()

hapax_check(tidy ${Python3_EXECUTABLE} -B tools/tidy.py)
hapax_check(tidy_test ${Python3_EXECUTABLE} -B tools/tidy_test.py)
hapax_check(house_test ${Python3_EXECUTABLE} -B tools/house_test.py)
hapax_check(tally_test ${Python3_EXECUTABLE} -B tools/tally_test.py)
hapax_check(format tools/format.sh --check)
# Every header that users include compiles on its own; ./dev check tries those of the rooms too.
hapax_check(headers ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR}
  --target hapax_api_verify_interface_header_sets)
# `headers` and the install test both read the build tree; ninja wants it alone.
set_tests_properties(headers PROPERTIES RESOURCE_LOCK build_tree)
