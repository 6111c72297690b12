# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(exporters caller)
cicada_unit_test(exporters requests DEPENDS test_support)
cicada_unit_test(exporters symbols)
cicada_unit_test(exporters ticks)
