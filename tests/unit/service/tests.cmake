# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(service claim DEPENDS test_support)
cicada_unit_test(service identity DEPENDS test_support)
cicada_unit_test(service paths DEPENDS test_support test_allocation)
cicada_unit_test(service records)
cicada_unit_test(service state DEPENDS test_support)
cicada_unit_test(service ticker DEPENDS test_support)
cicada_unit_test(service trace DEPENDS test_support test_allocation)
