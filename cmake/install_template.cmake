# SPDX-License-Identifier: BSD-3-Clause
# Runs at installation, once a template; see CicadaInstall.cmake.
get_filename_component(prefix "${CMAKE_INSTALL_PREFIX}" ABSOLUTE)
set(bindir "${prefix}/${bin}")
set(libdir "${prefix}/${lib}")
set(includedir "${prefix}/${include}")
set(mandir "${prefix}/${man}")
set(docdir "${prefix}/${doc}")
set(modulesdir "${prefix}/${modules}")
configure_file("${template}" "${made_dir}/${destination}/${name}" @ONLY)
# CMake puts DESTDIR before it and the file into the manifest.
file(INSTALL DESTINATION "${prefix}/${destination}" TYPE FILE FILES "${made_dir}/${destination}/${name}")
