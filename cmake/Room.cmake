# hapax_room(NAME DEPENDS rooms… LIBS libraries… TEST_DEPENDS rooms… TEST_LABELS labels…)
#
# Makes the library hapax_NAME from src/NAME (all *.cc but tests and main.cc) and the test binary
# hapax_NAME_test from src/NAME/*_test.cc. LIBS are private: no header of a room may show them.
# A room without files is no target, and rooms that name it do without.
function(hapax_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "DEPENDS;LIBS;TEST_DEPENDS;TEST_LABELS")
  hapax_room_files(${name})
  if(NOT sources AND NOT headers)
    return()
  endif()

  set(target hapax_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(visibility PUBLIC)
    target_link_libraries(${target} PRIVATE ${room_LIBS})
  else()
    add_library(${target} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_sources(${target} ${visibility}
    FILE_SET HEADERS BASE_DIRS ${header_base} FILES ${headers})
  target_link_libraries(${target} ${visibility} hapax_flags)
  foreach(dependency IN LISTS room_DEPENDS)
    if(TARGET hapax_${dependency})
      target_link_libraries(${target} ${visibility} hapax_${dependency})
    endif()
  endforeach()

  if(tests AND HAPAX_TESTS AND NOT HAPAX_FUZZ)
    # By name and only if it exists: a test may look at rooms that are declared further down.
    list(TRANSFORM room_TEST_DEPENDS REPLACE "(.+)" "$<TARGET_NAME_IF_EXISTS:hapax_\\1>")
    hapax_test(${target}_test SOURCES ${tests}
      LINK ${target} ${room_LIBS} ${room_TEST_DEPENDS} LABELS unit ${room_TEST_LABELS})
  endif()
endfunction()

# Sets sources, headers, header_base and tests of a room in the caller.
function(hapax_room_files name)
  set(folder ${PROJECT_SOURCE_DIR}/src/${name})
  set(header_base ${PROJECT_SOURCE_DIR}/src)
  set(header_folder ${folder})
  if(name STREQUAL "api")
    set(header_base ${PROJECT_SOURCE_DIR}/include)
    set(header_folder ${header_base}/hapax)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${folder}/*_test.cc)
  file(GLOB headers CONFIGURE_DEPENDS ${header_folder}/*.h)
  list(FILTER headers EXCLUDE REGEX "_test\\.h$")
  list(REMOVE_ITEM sources ${folder}/main.cc ${tests})
  return(PROPAGATE sources headers header_base tests)
endfunction()
