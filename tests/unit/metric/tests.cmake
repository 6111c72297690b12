# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(metric value DEPENDS test_support)
cicada_unit_test(metric name DEPENDS test_support)
cicada_unit_test(metric job DEPENDS test_allocation)
cicada_unit_test(metric registry DEPENDS test_allocation test_support)
cicada_unit_test(metric exposition_parse DEPENDS test_allocation test_support)
