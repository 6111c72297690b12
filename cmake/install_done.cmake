# SPDX-License-Identifier: BSD-3-Clause
# Runs last at installation; see CicadaInstall.cmake.
get_filename_component(prefix "${CMAKE_INSTALL_PREFIX}" ABSOLUTE)
file(WRITE "${build_dir}/installed/prefix" "${prefix}")
message(NOTICE "
Cicada ${version} is installed in $ENV{DESTDIR}${prefix}. To use it:

    export PATH=\"${prefix}/${bin}:\$PATH\"
    export MANPATH=\"${prefix}/${man}:\$MANPATH\"

and for programs that count with libproxyclient (pkg-config proxyclient):

    export PKG_CONFIG_PATH=\"${prefix}/${lib}/pkgconfig:\$PKG_CONFIG_PATH\"
    export LD_LIBRARY_PATH=\"${prefix}/${lib}\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}\"

or all of it, where there are environment modules:

    module use \"${prefix}/${modules}\"
    module load cicada/${version}

To remove it: cmake --build \"${build_dir}\" --target uninstall
")
