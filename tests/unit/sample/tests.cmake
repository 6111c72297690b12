# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(sample probe)
cicada_unit_test(sample mounts)
