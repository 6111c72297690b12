# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(run binary DEPENDS test_support)
