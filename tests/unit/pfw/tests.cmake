# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(pfw line)
cicada_unit_test(pfw args)
cicada_unit_test(pfw reader DEPENDS test_allocation)
cicada_unit_test(pfw names)

# What the tests of the writing side share: a gzip file taken apart by zlib.
add_library(cicada_test_members OBJECT pfw/members.c)
target_link_libraries(cicada_test_members PRIVATE cicada_flags cicada_util)
target_include_directories(cicada_test_members PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/pfw")
cicada_link_packages(cicada_test_members cmocka zlib)

# And system calls that fail, stop short or hang.
add_library(cicada_test_sysio OBJECT pfw/sysio.c)
target_link_libraries(cicada_test_sysio PRIVATE cicada_flags)
target_include_directories(cicada_test_sysio PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/pfw")
foreach(function pwrite ftruncate fdatasync)
  target_link_options(cicada_test_sysio INTERFACE "LINKER:--wrap=${function}")
endforeach()

add_library(cicada_test_trace OBJECT pfw/trace.c)
target_link_libraries(cicada_test_trace PRIVATE cicada_flags cicada_pfw cicada_test_members cicada_test_support
                      cicada_test_sysio)

cicada_unit_test(pfw event DEPENDS test_support)
cicada_unit_test(pfw pages DEPENDS test_support test_allocation test_members)
cicada_unit_test(pfw file DEPENDS test_support test_allocation test_members test_sysio)
cicada_unit_test(pfw queue DEPENDS test_support test_allocation)
cicada_unit_test(pfw writer DEPENDS test_support test_allocation test_members test_sysio test_trace)
target_link_options(unit_pfw_writer PRIVATE -Wl,--wrap=clock_mono_ns)
cicada_unit_test(pfw writer_failures DEPENDS test_support test_members test_sysio test_trace)
cicada_unit_test(pfw sketch DEPENDS test_support test_allocation)
cicada_unit_test(pfw unit)
cicada_unit_test(pfw hosts)
cicada_unit_test(pfw series)
cicada_unit_test(pfw cadence)
cicada_unit_test(pfw moment)
cicada_unit_test(pfw filter)
cicada_unit_test(pfw stats DEPENDS test_allocation)
cicada_unit_test(pfw summary DEPENDS test_allocation)
cicada_unit_test(pfw perfetto DEPENDS test_allocation)
cicada_unit_test(pfw window)
cicada_unit_test(pfw json)
