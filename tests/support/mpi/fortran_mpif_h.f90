! SPDX-License-Identifier: BSD-3-Clause
!
! fortran_mpif_h: with mpif.h.
program fortran_mpif_h
  implicit none
  include 'mpif.h'
  integer :: requests(4)
  include 'fortran_variables.inc'
  include 'fortran.inc'
end program
