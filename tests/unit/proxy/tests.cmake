# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(proxy segment_reader DEPENDS client test_support)
cicada_unit_test(proxy wire DEPENDS test_support test_allocation)
cicada_unit_test(proxy jobs DEPENDS test_support)
cicada_unit_test(proxy state DEPENDS test_support test_allocation)
cicada_unit_test(proxy node)
cicada_unit_test(proxy profiles DEPENDS test_support test_allocation)
cicada_unit_test(proxy alarms DEPENDS test_support test_allocation)
