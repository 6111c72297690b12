! SPDX-License-Identifier: BSD-3-Clause
!
! fortran_mpi_f08: with the module mpi_f08.
program fortran_mpi_f08
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(4)
  include 'fortran_variables.inc'
  include 'fortran.inc'
end program
