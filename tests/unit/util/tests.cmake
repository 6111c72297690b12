# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(util error)
cicada_unit_test(util num)
cicada_unit_test(util cleanup)
cicada_unit_test(util clock)
cicada_unit_test(util utf8)
cicada_unit_test(util log)
cicada_unit_test(util buf DEPENDS test_support test_allocation)
cicada_unit_test(util cursor DEPENDS test_support)
