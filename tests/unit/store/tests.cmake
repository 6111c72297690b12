# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(store pack DEPENDS test_support test_allocation)
cicada_unit_test(store codec DEPENDS test_support test_allocation)
cicada_unit_test(store chunk DEPENDS test_support test_allocation)
cicada_unit_test(store trace DEPENDS test_support)
