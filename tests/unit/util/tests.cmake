# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(util error)
cicada_unit_test(util buf DEPENDS test_support test_allocation)
