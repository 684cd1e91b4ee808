# How tests, fuzzers and benchmarks are declared.
#
# Labels: unit, contract, sim, e2e, fuzz-corpus and tidy say what a test is; `threads` adds the
# ThreadSanitizer run, `determinism` the run in the clang build (CMakePresets.json selects).

# Built by the tsan preset instead of everything: all test binaries labelled `threads`.
add_custom_target(hapax_threads_tests)
# Built by the asan-ubsan preset: those but the contract suite, the simulation and the fuzzers'
# corpus. The other tests cost more to compile there than they find; `cmake --build
# build/asan-ubsan` builds them.
add_custom_target(hapax_memory_tests)

# Linked last: of two options that contradict each other the later one counts.
add_library(hapax_test_flags INTERFACE)
if(HAPAX_SANITIZE MATCHES "undefined")
  target_compile_options(hapax_test_flags INTERFACE -fno-sanitize=undefined)
endif()

# One GoogleTest binary, not yet known to ctest.
function(hapax_test_binary target)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "WITHOUT" "SOURCES;LINK;LABELS")
  add_executable(${target} ${test_SOURCES})
  target_link_libraries(${target} PRIVATE
    hapax_flags ${test_LINK} GTest::gmock GTest::gtest_main hapax_test_flags)
  # What tests cost is compiling, not running; and it is our code whose undefined behaviour is
  # looked for, not the tests'. Few per unit: whoever changes one waits for all of them.
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 5)
  target_compile_options(${target} PRIVATE -O0 -g0)
  if(TARGET rapidcheck_gtest)
    target_link_libraries(${target} PRIVATE rapidcheck_gtest)
  endif()
  if("threads" IN_LIST test_LABELS)
    add_dependencies(hapax_threads_tests ${target})
    if(NOT "contract" IN_LIST test_LABELS)
      add_dependencies(hapax_memory_tests ${target})
    endif()
  endif()
endfunction()

# hapax_test(TARGET SOURCES files… LINK targets… LABELS labels…)
# One GoogleTest binary; each of its tests is a ctest entry, but those WITHOUT names as GoogleTest
# filters. A skipped test shows as skipped.
function(hapax_test target)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "WITHOUT" "SOURCES;LINK;LABELS")
  if(test_WITHOUT)
    set(test_WITHOUT TEST_FILTER "-${test_WITHOUT}")
  endif()
  hapax_test_binary(${target} ${ARGN})
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 120 TEST_PREFIX "${target}." ${test_WITHOUT})
  # Not by PROPERTIES: CMake 3.25 keeps only the first label of a list there.
  set(labels ${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake)
  file(CONFIGURE OUTPUT ${labels} @ONLY CONTENT [[
if(@target@_TESTS)
  set_tests_properties(${@target@_TESTS} PROPERTIES LABELS "@test_LABELS@" TIMEOUT 120)
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
endfunction()

# The same as one ctest entry: for tests that share something that is slow to start.
function(hapax_program_test target)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "SOURCES;LINK;LABELS")
  hapax_test_binary(${target} ${ARGN})
  add_test(NAME ${target} COMMAND ${target} --gtest_brief=1)
  set_tests_properties(${target} PROPERTIES LABELS "${test_LABELS}" TIMEOUT 900 COST 100)
endfunction()

# The contract suite: one binary over every store, and one for what many threads do to it, which is
# all that the thread sanitizer has to look at.
function(hapax_contract_tests)
  set(folder ${PROJECT_SOURCE_DIR}/tests/contract)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${folder}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  list(REMOVE_ITEM sources ${tests})
  if(HAPAX_SANITIZE MATCHES "thread")
    hapax_test(hapax_contract_threads_test SOURCES ${folder}/store_threads_test.cc
      LINK hapax_embedded LABELS contract threads)
    target_compile_definitions(hapax_contract_threads_test PRIVATE HAPAX_CONTRACT_EMBEDDED_ONLY)
    return()
  endif()
  add_library(hapax_contract OBJECT ${sources})
  set_target_properties(hapax_contract PROPERTIES UNITY_BUILD_BATCH_SIZE 5)
  # The drivers write and read whole commits of 100,000 operations.
  target_compile_options(hapax_contract PRIVATE -O1 -g0)
  # No more rooms than it needs: the sanitizers' trees build all of them.
  target_link_libraries(hapax_contract PUBLIC hapax_flags hapax_embedded hapax_shared_postgres
    hapax_sqlite
    hapax_rest hapax_resp GTest::gtest)
  list(REMOVE_ITEM tests ${folder}/store_threads_test.cc)
  hapax_test(hapax_contract_test SOURCES ${tests} LINK hapax_contract hapax_sim LABELS contract
    WITHOUT "*/postgres:*/http:*/resp:*/job_postgres:*/job_sqlite")
  hapax_test(hapax_contract_threads_test SOURCES ${folder}/store_threads_test.cc
    LINK hapax_contract LABELS contract threads WITHOUT "*/postgres")
  # Cases that share one server, or at least one start of a large program.
  hapax_contract_over(hapax_contract_test postgres http resp job_postgres job_sqlite)
  hapax_contract_over(hapax_contract_threads_test postgres)
endfunction()

function(hapax_contract_over program)
  foreach(store IN LISTS ARGN)
    add_test(NAME ${program}.${store} COMMAND ${program} --gtest_filter=*/${store} --gtest_brief=1)
    set_tests_properties(${program}.${store} PROPERTIES LABELS contract TIMEOUT 600)
  endforeach()
endfunction()

# hapax_fuzzer(NAME rooms…): source fuzz_NAME.cc with LLVMFuzzerTestOneInput, inputs in
# corpus/NAME. With HAPAX_FUZZ it hunts; where the address sanitizer looks on it replays the corpus
# as a test.
function(hapax_fuzzer name)
  if(NOT HAPAX_FUZZ AND NOT HAPAX_SANITIZE MATCHES "address")
    return()
  endif()
  add_executable(fuzz_${name} fuzz_${name}.cc)
  list(TRANSFORM ARGN PREPEND hapax_ OUTPUT_VARIABLE rooms)
  target_link_libraries(fuzz_${name} PRIVATE hapax_flags ${rooms})
  if(HAPAX_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  elseif(HAPAX_TESTS)
    target_sources(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tools/fuzz_replay.cc)
    add_dependencies(hapax_memory_tests fuzz_${name})
    add_test(NAME fuzz_corpus.${name}
      COMMAND fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
    set_tests_properties(fuzz_corpus.${name} PROPERTIES LABELS fuzz-corpus)
  endif()
endfunction()

# hapax_bench(NAME targets…): source NAME.cc, run by `./dev bench NAME`.
function(hapax_bench name)
  add_executable(hapax_bench_${name} ${name}.cc)
  target_link_libraries(hapax_bench_${name} PRIVATE hapax_flags ${ARGN} hapax_allocator)
endfunction()

function(hapax_subdirectories)
  foreach(folder IN LISTS ARGN)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()

if(HAPAX_TESTS AND NOT HAPAX_FUZZ)
  include(GoogleTest)
endif()
