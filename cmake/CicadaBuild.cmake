# SPDX-License-Identifier: BSD-3-Clause
# How a folder under src/ becomes a library whose dependencies the compiler enforces.
#
# Headers are included as "util/buf.h". A library sees a folder only through a directory that holds
# nothing but a link to that folder, and gets it by naming the library in DEPENDS: an include of a
# folder that is not among the dependencies finds no file.

find_package(PkgConfig REQUIRED)

add_library(cicada_flags INTERFACE)
target_compile_definitions(cicada_flags INTERFACE _GNU_SOURCE)
target_compile_options(cicada_flags INTERFACE
  -std=gnu17 -fvisibility=hidden -fno-common
  -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef
  -Wformat=2 -Wvla -Wpointer-arith -Wcast-qual -Wwrite-strings -Wnull-dereference
  $<$<BOOL:${CICADA_WERROR}>:-Werror>)
if(NOT CICADA_SANITIZE STREQUAL "")
  target_compile_options(cicada_flags INTERFACE
    -fsanitize=${CICADA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(cicada_flags INTERFACE -fsanitize=${CICADA_SANITIZE})
endif()
if(CICADA_FUZZ)
  target_compile_options(cicada_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The daemons keep their asserts in every build: a wrong number is worse than a restart.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")

# cicada_library(util SOURCES a.c b.c [DEPENDS lower…] [PACKAGES pkg-config-name…])
# makes target cicada_util of src/util.
function(cicada_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PACKAGES" ${ARGN})
  set(layer "${CMAKE_BINARY_DIR}/layers/${name}")
  file(MAKE_DIRECTORY "${layer}")
  file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${layer}/${name}" SYMBOLIC)

  add_library(cicada_${name} STATIC ${arg_SOURCES})
  set_target_properties(cicada_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(cicada_${name} PUBLIC "${layer}")
  target_link_libraries(cicada_${name} PRIVATE cicada_flags)
  foreach(dependency IN LISTS arg_DEPENDS)
    target_link_libraries(cicada_${name} PUBLIC cicada_${dependency})
  endforeach()
  cicada_link_packages(cicada_${name} ${arg_PACKAGES})
endfunction()

# cicada_program(pfw SOURCES pfw.c DEPENDS pfw util [PACKAGES …]) makes <build>/bin/pfw and installs it.
function(cicada_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PACKAGES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cicada_flags)
  foreach(dependency IN LISTS arg_DEPENDS)
    target_link_libraries(${name} PRIVATE cicada_${dependency})
  endforeach()
  cicada_link_packages(${name} ${arg_PACKAGES})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# Links packages by their pkg-config names; a missing one stops the configuration and names what to install.
function(cicada_link_packages target)
  foreach(package IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "PC_${package}" variable)
    pkg_check_modules(${variable} REQUIRED IMPORTED_TARGET GLOBAL ${package})
    target_link_libraries(${target} PUBLIC PkgConfig::${variable})
  endforeach()
endfunction()

# cicada_optional(cmocka PACKAGE cmocka DEBIAN libcmocka-dev COSTS "the unit tests") sets CICADA_HAS_CMOCKA, and
# makes PkgConfig::OPTIONAL_CMOCKA, when the package is there and CICADA_WITH_CMOCKA isn't OFF. What is missing is told at the end of the configuration.
function(cicada_optional name)
  cmake_parse_arguments(arg "" "PACKAGE;DEBIAN;COSTS" "" ${ARGN})
  string(TOUPPER "${name}" upper)
  option(CICADA_WITH_${upper} "Use ${name}; without it the build lacks ${arg_COSTS}" ON)
  set(has OFF)
  set(cause "switched off by CICADA_WITH_${upper}=OFF")
  if(CICADA_WITH_${upper})
    pkg_check_modules(OPTIONAL_${upper} QUIET IMPORTED_TARGET GLOBAL ${arg_PACKAGE})
    set(has ${OPTIONAL_${upper}_FOUND})
    set(cause "not found; Debian's package is ${arg_DEBIAN}")
  endif()
  if(NOT has)
    set_property(GLOBAL APPEND PROPERTY CICADA_MISSING "Without ${name} this build lacks ${arg_COSTS} (${cause}).")
    set(has OFF)
  endif()
  set(CICADA_HAS_${upper} ${has} PARENT_SCOPE)
endfunction()

function(cicada_tell_missing)
  get_property(lines GLOBAL PROPERTY CICADA_MISSING)
  foreach(line IN LISTS lines)
    message(STATUS "${line}")
  endforeach()
endfunction()

# cicada_unit_test(util buf [DEPENDS …]) makes unit_util_buf of tests/unit/util/test_buf.c and gives it to CTest.
function(cicada_unit_test folder module)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  set(name unit_${folder}_${module})
  add_executable(${name} ${folder}/test_${module}.c)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_link_libraries(${name} PRIVATE cicada_flags cicada_${folder})
  foreach(dependency IN LISTS arg_DEPENDS)
    target_link_libraries(${name} PRIVATE cicada_${dependency})
  endforeach()
  cicada_link_packages(${name} cmocka)
  target_compile_definitions(${name} PRIVATE TESTS_DIR="${CMAKE_SOURCE_DIR}/tests")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 120)
endfunction()

add_custom_target(fuzz_targets COMMENT "all fuzz targets")

# cicada_fuzz_target(config DEPENDS util) makes fuzz_config of tests/fuzz/fuzz_config.c; its corpus is tests/fuzz/corpus/config/.
# Without CICADA_FUZZ the same file is linked with a driver that replays the corpus, so that no target can rot.
function(cicada_fuzz_target name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  set(target fuzz_${name})
  set(corpus "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}")
  if(CICADA_FUZZ)
    add_executable(${target} fuzz_${name}.c)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${target} fuzz_${name}.c replay.c)
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_link_libraries(${target} PRIVATE cicada_flags)
  foreach(dependency IN LISTS arg_DEPENDS)
    target_link_libraries(${target} PRIVATE cicada_${dependency})
  endforeach()
  add_dependencies(fuzz_targets ${target})
  set(replay_options "")
  if(CICADA_FUZZ)
    set(replay_options -runs=0)
  endif()
  add_test(NAME ${target} COMMAND ${target} ${replay_options} "${corpus}")
  set_tests_properties(${target} PROPERTIES LABELS fuzz TIMEOUT 120)
endfunction()
