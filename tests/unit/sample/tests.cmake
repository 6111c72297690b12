# SPDX-License-Identifier: BSD-3-Clause
cicada_unit_test(sample probe)
cicada_unit_test(sample mounts)
cicada_unit_test(sample filesystem)
if(TARGET hangfs)
  add_dependencies(unit_sample_filesystem hangfs)
endif()
