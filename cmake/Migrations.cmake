# hapax_migrations(ROOM): embeds migrations/ROOM/*.sql into the room as hapax::ROOM::migrations(),
# in the order of their numbers. The number and the name are those of the file: 0001_name.sql.
function(hapax_migrations room)
  if(NOT TARGET hapax_${room})
    return()
  endif()
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/migrations/${room}/*.sql)
  list(SORT files)
  set(entries "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(stem ${file} NAME_WE)
    if(NOT stem MATCHES "^0*([1-9][0-9]*)_([a-z0-9_]+)$")
      message(FATAL_ERROR "${file}: migrations are called NNNN_name.sql")
    endif()
    set(number ${CMAKE_MATCH_1})
    set(name ${CMAKE_MATCH_2})
    file(READ ${file} text)
    string(APPEND entries "    {${number}, \"${name}\", R\"sql(${text})sql\"},\n")
  endforeach()
  set(generated ${PROJECT_BINARY_DIR}/generated/${room}_migrations.cc)
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [[
// Made by cmake/Migrations.cmake from migrations/@room@.
#include "@room@/migrate.h"

namespace hapax::@room@ {

std::span<const tables::Migration> migrations() {
  static constexpr tables::Migration kMigrations[] = {
@entries@  };
  return kMigrations;
}

}  // namespace hapax::@room@
]])
  target_sources(hapax_${room} PRIVATE ${generated})
endfunction()

# hapax_statements(ROOM FOLDER HEADER): embeds migrations/FOLDER/NAME.sql, what is run apart from
# the numbered migrations, into the room as hapax::ROOM::NAME_sql(), which HEADER declares.
function(hapax_statements room folder header)
  if(NOT TARGET hapax_${room})
    return()
  endif()
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/migrations/${folder}/*.sql)
  list(SORT files)
  set(entries "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND entries
      "std::string_view ${name}_sql() {\n  return R\"sql(${text})sql\";\n}\n\n")
  endforeach()
  set(generated ${PROJECT_BINARY_DIR}/generated/${room}_statements.cc)
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [[
// Made by cmake/Migrations.cmake from migrations/@folder@.
#include "@header@"

namespace hapax::@room@ {

@entries@}  // namespace hapax::@room@
]])
  target_sources(hapax_${room} PRIVATE ${generated})
endfunction()
