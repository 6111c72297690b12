# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(pfw line)
cicada_unit_test(pfw args)
cicada_unit_test(pfw reader)
