# SPDX-License-Identifier: BSD-3-Clause
# Installation of files that hold the prefix. It is known only when `cmake --install … --prefix` runs, so they are
# made then. A template may use @prefix@, @bindir@, @libdir@, @includedir@, @mandir@, @docdir@, @modulesdir@ and @version@.

# Where the modulefiles are: `module use <prefix>/share/modulefiles`.
set(CICADA_INSTALL_MODULEDIR "${CMAKE_INSTALL_DATADIR}/modulefiles")

# cicada_install_template(cicada.pc.in lib/pkgconfig [new-name]): installs a template; its name loses the .in.
function(cicada_install_template template destination)
  get_filename_component(template "${template}" ABSOLUTE)
  set(name "${ARGV2}")
  if(name STREQUAL "")
    get_filename_component(name "${template}" NAME)
    string(REGEX REPLACE "\\.in$" "" name "${name}")
  endif()
  install(CODE "
    set(template \"${template}\")
    set(destination \"${destination}\")
    set(name \"${name}\")
    set(made_dir \"${CMAKE_BINARY_DIR}/installed\")
    set(version \"${PROJECT_VERSION}\")
    set(bin \"${CMAKE_INSTALL_BINDIR}\")
    set(lib \"${CMAKE_INSTALL_LIBDIR}\")
    set(include \"${CMAKE_INSTALL_INCLUDEDIR}\")
    set(man \"${CMAKE_INSTALL_MANDIR}\")
    set(doc \"${CMAKE_INSTALL_DOCDIR}\")
    set(modules \"${CICADA_INSTALL_MODULEDIR}\")
    include(\"${CMAKE_SOURCE_DIR}/cmake/install_template.cmake\")")
endfunction()

# Called last: what a shell needs to use what was installed, and the target that removes it.
function(cicada_finish_install)
  install(CODE "
    set(build_dir \"${CMAKE_BINARY_DIR}\")
    set(version \"${PROJECT_VERSION}\")
    set(bin \"${CMAKE_INSTALL_BINDIR}\")
    set(lib \"${CMAKE_INSTALL_LIBDIR}\")
    set(man \"${CMAKE_INSTALL_MANDIR}\")
    set(modules \"${CICADA_INSTALL_MODULEDIR}\")
    include(\"${CMAKE_SOURCE_DIR}/cmake/install_done.cmake\")")
  add_custom_target(uninstall
    COMMAND "${CMAKE_COMMAND}" "-DBUILD_DIR=${CMAKE_BINARY_DIR}" -P "${CMAKE_SOURCE_DIR}/cmake/uninstall.cmake"
    COMMENT "Removing what was installed from this build" VERBATIM)
endfunction()
