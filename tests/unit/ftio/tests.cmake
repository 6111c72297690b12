# SPDX-License-Identifier: BSD-3-Clause
if(TARGET cicada_ftio)
  cicada_unit_test(ftio spectrum)
  cicada_link_packages(unit_ftio_spectrum jansson)
endif()
