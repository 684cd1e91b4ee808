# hapax_mutants: the rooms of the simulation once more, with the planted bugs of base/mutant.h.
# Link it instead of the rooms, never beside them; it is compiled only if somebody does.

set(mutant_sources "")
foreach(room IN ITEMS base digest ports core journal engine sim)
  if(TARGET hapax_${room})
    get_target_property(type hapax_${room} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      get_target_property(sources hapax_${room} SOURCES)
      list(APPEND mutant_sources ${sources})
    endif()
  endif()
endforeach()

if(mutant_sources)
  add_library(hapax_mutants STATIC EXCLUDE_FROM_ALL ${mutant_sources})
  target_compile_definitions(hapax_mutants PUBLIC HAPAX_MUTANTS)
  set_target_properties(hapax_mutants PROPERTIES UNITY_BUILD ON)
  # They run for seconds and compile for minutes.
  target_compile_options(hapax_mutants PRIVATE -O1 -g0
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # See Flags.cmake.
  target_link_libraries(hapax_mutants
    PUBLIC hapax_flags PRIVATE PkgConfig::libsodium PkgConfig::libisal Threads::Threads)
endif()
