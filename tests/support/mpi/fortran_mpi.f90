! SPDX-License-Identifier: BSD-3-Clause
!
! fortran_mpi: with the module mpi.
program fortran_mpi
  use mpi
  implicit none
  integer :: requests(4)
  include 'fortran_variables.inc'
  include 'fortran.inc'
end program
