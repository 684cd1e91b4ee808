# What leaves the house: the library hapax::hapax (libhapax.a with the public headers), its CMake
# package and pkg-config file, and the command `hapax`. hapax::postgres and hapax::sqlite are the
# same archive with the library of a database: who uses neither does not need them.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# sim stays inside (tests only), cli is the command's own.
set(product_rooms api base digest signing ports core journal engine shared host embedded tables
  relay postgres shared_postgres sqlite)
set(product_objects "")
foreach(room IN LISTS product_rooms)
  if(TARGET hapax_${room})
    get_target_property(type hapax_${room} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND product_objects $<TARGET_OBJECTS:hapax_${room}>)
    endif()
  endif()
endforeach()

if(product_objects)
  add_library(hapax STATIC ${product_objects})
  add_library(hapax::hapax ALIAS hapax)
  set_target_properties(hapax PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_features(hapax PUBLIC cxx_std_20)
  target_include_directories(hapax PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(hapax PRIVATE PkgConfig::libsodium PkgConfig::libisal Threads::Threads)
  target_link_options(hapax INTERFACE
    $<BUILD_INTERFACE:$<TARGET_PROPERTY:hapax_flags,INTERFACE_LINK_OPTIONS>>)

  foreach(part IN ITEMS postgres:libpq sqlite:sqlite3)
    string(REPLACE ":" ";" part ${part})
    list(GET part 0 database)
    list(GET part 1 library)
    add_library(hapax_with_${database} INTERFACE)
    add_library(hapax::${database} ALIAS hapax_with_${database})
    set_target_properties(hapax_with_${database} PROPERTIES EXPORT_NAME ${database})
    target_link_libraries(hapax_with_${database} INTERFACE hapax PkgConfig::${library})
    install(TARGETS hapax_with_${database} EXPORT hapaxTargets)
    configure_file(cmake/hapax-database.pc.in hapax-${database}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/hapax-${database}.pc
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endforeach()

  install(TARGETS hapax EXPORT hapaxTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY include/hapax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def")

  set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/hapax)
  install(EXPORT hapaxTargets NAMESPACE hapax:: DESTINATION ${package_folder})
  configure_package_config_file(cmake/hapaxConfig.cmake.in hapaxConfig.cmake
    INSTALL_DESTINATION ${package_folder})
  # Before 1.0 a minor version may change the interface.
  write_basic_package_version_file(hapaxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/hapaxConfig.cmake
    ${PROJECT_BINARY_DIR}/hapaxConfigVersion.cmake DESTINATION ${package_folder})

  file(RELATIVE_PATH up_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(cmake/hapax.pc.in hapax.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/hapax.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# The target is hapax_exe because the library has the name hapax; the file is bin/hapax.
if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.cc)
  add_executable(hapax_exe src/cli/main.cc)
  set_target_properties(hapax_exe PROPERTIES OUTPUT_NAME hapax)
  target_compile_definitions(hapax_exe PRIVATE HAPAX_VERSION="${PROJECT_VERSION}")
  target_link_libraries(hapax_exe PRIVATE hapax_flags CLI11::CLI11
    $<TARGET_NAME_IF_EXISTS:hapax_cli> hapax_allocator)
  if(TARGET hapax_cli)
    target_compile_definitions(hapax_cli PRIVATE HAPAX_VERSION="${PROJECT_VERSION}")
  endif()
  install(TARGETS hapax_exe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# The worker of transforms is a program of its own, so that libjq stays out of the server's process
# (docs/decisions/0031). It lies beside the command and beside the tests' programs, where the pool
# looks for it. glibc's allocator: jemalloc would reserve more than the limit allows.
if(EXISTS ${PROJECT_SOURCE_DIR}/src/jq/main.cc AND NOT HAPAX_FUZZ)
  add_executable(hapax_jq_exe src/jq/main.cc)
  set_target_properties(hapax_jq_exe PROPERTIES OUTPUT_NAME hapax-jq)
  target_link_libraries(hapax_jq_exe PRIVATE hapax_flags hapax_jq)
  install(TARGETS hapax_jq_exe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  foreach(user IN ITEMS hapax_exe hapax_transform_test)
    if(TARGET ${user})
      add_dependencies(${user} hapax_jq_exe)
    endif()
  endforeach()
endif()
