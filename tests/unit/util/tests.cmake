# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(util error)
