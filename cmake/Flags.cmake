# hapax_flags: the compile and link options of every target of ours, never of our users.

add_library(hapax_flags INTERFACE)
target_include_directories(hapax_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
# Headers only: base/format.cc compiles fmt's code, so nothing links libfmt (docs/decisions/0024).
target_include_directories(hapax_flags SYSTEM INTERFACE
  $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)

target_compile_options(hapax_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wold-style-cast -Wcast-qual -Wimplicit-fallthrough
  # Designated initialisers leave members out on purpose: the default stands in the struct.
  -Wno-missing-field-initializers
  # Profiles and sanitizer reports need whole stacks.
  -fno-omit-frame-pointer
  # Assertion messages name src/…, wherever the tree was built.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 writes two members of 8 bytes and reads them as one of 16 a moment later, which no
  # processor forwards from its store buffer: a commit with 100 claims took a twentieth longer.
  target_compile_options(hapax_flags INTERFACE $<$<CONFIG:Release>:-fno-tree-slp-vectorize>)
  # GCC bug 105651: g++ 12 sees an overlapping copy in std::string concatenation at -O2.
  target_compile_options(hapax_flags INTERFACE -Wno-restrict)
  if(CMAKE_UNITY_BUILD)
    # In a unity build every source is an included file; the warning is about headers.
    target_compile_options(hapax_flags INTERFACE -Wno-subobject-linkage)
  endif()
  if(HAPAX_SANITIZE)
    # GCC's manual: sanitizers make this warning raise false alarms (optional and variant do).
    target_compile_options(hapax_flags INTERFACE -Wno-maybe-uninitialized)
    # Asio orders its queues with fences, which g++'s thread sanitizer does not see.
    target_compile_options(hapax_flags INTERFACE -Wno-tsan)
  endif()
else()
  # HAPAX_GUARDED_BY and HAPAX_REQUIRES of base/mutex.h are checked; a finding fails the build.
  target_compile_options(hapax_flags INTERFACE -Wthread-safety)
endif()

# Release leaves the library's checks out of the hot loops; HAPAX_ASSERT stays on everywhere.
target_compile_definitions(hapax_flags INTERFACE $<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)

if(HAPAX_SANITIZE)
  target_compile_options(hapax_flags INTERFACE
    -fsanitize=${HAPAX_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(hapax_flags INTERFACE -fsanitize=${HAPAX_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND HAPAX_SANITIZE MATCHES "undefined")
    # To look at an object's type clang opens a pipe: an error where no descriptor is free.
    target_compile_options(hapax_flags INTERFACE -fno-sanitize=vptr)
  endif()
endif()

# hapax_allocator: for programs of ours, not for the library. See docs/decisions/0010.
add_library(hapax_allocator INTERFACE)
if(NOT HAPAX_SANITIZE AND NOT HAPAX_FUZZ)
  target_link_libraries(hapax_allocator INTERFACE PkgConfig::jemalloc)
endif()
