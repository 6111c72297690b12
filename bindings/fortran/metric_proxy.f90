! SPDX-License-Identifier: BSD-3-Clause
!
! metric_proxy: counters and gauges of a Fortran program, for the metric proxy of its node.
!
!     use metric_proxy
!     type(metric_proxy_value) :: steps
!     steps = metric_proxy_counter("solver_steps_total", "steps of the solver")
!     call metric_proxy_inc(steps, 1.0d0)
!
! Compile this file with your program and link with -lproxyclient (pkg-config proxyclient). Nothing here fails: where a
! metric can't be had, calls for it do nothing. All of it may be called by any thread.
module metric_proxy
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: metric_proxy_value, metric_proxy_counter, metric_proxy_gauge, metric_proxy_timer
  public :: metric_proxy_inc, metric_proxy_add, metric_proxy_set, metric_proxy_start, metric_proxy_stop, metric_proxy_end

  type :: metric_proxy_value
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  type(c_ptr), save :: client = c_null_ptr

  interface
    function c_init() bind(c, name="metric_proxy_init") result(handle)
      import :: c_ptr
      type(c_ptr) :: handle
    end function
    function c_release(handle) bind(c, name="metric_proxy_release") result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: handle
      integer(c_int) :: status
    end function
    function c_counter_new(handle, name, doc) bind(c, name="metric_proxy_counter_new") result(value)
      import :: c_ptr, c_char
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*), doc(*)
      type(c_ptr) :: value
    end function
    function c_gauge_new(handle, name, doc) bind(c, name="metric_proxy_gauge_new") result(value)
      import :: c_ptr, c_char
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*), doc(*)
      type(c_ptr) :: value
    end function
    function c_timer_new(handle, name, doc) bind(c, name="metric_proxy_timer_new") result(value)
      import :: c_ptr, c_char
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*), doc(*)
      type(c_ptr) :: value
    end function
    function c_inc(value, amount) bind(c, name="metric_proxy_counter_inc") result(status)
      import :: c_ptr, c_double, c_int
      type(c_ptr), value :: value
      real(c_double), value :: amount
      integer(c_int) :: status
    end function
    function c_add(value, amount) bind(c, name="metric_proxy_counter_add_u64") result(status)
      import :: c_ptr, c_int64_t, c_int
      type(c_ptr), value :: value
      integer(c_int64_t), value :: amount
      integer(c_int) :: status
    end function
    function c_set(value, amount) bind(c, name="metric_proxy_gauge_set") result(status)
      import :: c_ptr, c_double, c_int
      type(c_ptr), value :: value
      real(c_double), value :: amount
      integer(c_int) :: status
    end function
    function c_start() bind(c, name="metric_proxy_timer_start") result(instant)
      import :: c_int64_t
      integer(c_int64_t) :: instant
    end function
    function c_stop(value, instant) bind(c, name="metric_proxy_timer_stop") result(status)
      import :: c_ptr, c_int64_t, c_int
      type(c_ptr), value :: value
      integer(c_int64_t), value :: instant
      integer(c_int) :: status
    end function
  end interface

contains

  ! The client's handle is the same whoever asks first.
  subroutine begin()
    if (.not. c_associated(client)) client = c_init()
  end subroutine

  function metric_proxy_counter(name, doc) result(counter)
    character(*), intent(in) :: name, doc
    type(metric_proxy_value) :: counter
    call begin()
    counter%handle = c_counter_new(client, trim(name)//c_null_char, trim(doc)//c_null_char)
  end function

  function metric_proxy_gauge(name, doc) result(gauge)
    character(*), intent(in) :: name, doc
    type(metric_proxy_value) :: gauge
    call begin()
    gauge%handle = c_gauge_new(client, trim(name)//c_null_char, trim(doc)//c_null_char)
  end function

  ! A counter of seconds, for metric_proxy_start() and metric_proxy_stop().
  function metric_proxy_timer(name, doc) result(timer)
    character(*), intent(in) :: name, doc
    type(metric_proxy_value) :: timer
    call begin()
    timer%handle = c_timer_new(client, trim(name)//c_null_char, trim(doc)//c_null_char)
  end function

  ! Adds to a counter: at least 0, and finite.
  subroutine metric_proxy_inc(counter, amount)
    type(metric_proxy_value), intent(in) :: counter
    real(c_double), intent(in) :: amount
    integer(c_int) :: ignored
    ignored = c_inc(counter%handle, amount)
  end subroutine

  ! Adds a whole number, exactly; below 0 adds nothing.
  subroutine metric_proxy_add(counter, amount)
    type(metric_proxy_value), intent(in) :: counter
    integer(c_int64_t), intent(in) :: amount
    integer(c_int) :: ignored
    if (amount > 0) ignored = c_add(counter%handle, amount)
  end subroutine

  ! Replaces a gauge's value.
  subroutine metric_proxy_set(gauge, amount)
    type(metric_proxy_value), intent(in) :: gauge
    real(c_double), intent(in) :: amount
    integer(c_int) :: ignored
    ignored = c_set(gauge%handle, amount)
  end subroutine

  ! An instant, for metric_proxy_stop().
  function metric_proxy_start() result(instant)
    integer(c_int64_t) :: instant
    instant = c_start()
  end function

  ! Adds the time since that instant.
  subroutine metric_proxy_stop(timer, instant)
    type(metric_proxy_value), intent(in) :: timer
    integer(c_int64_t), intent(in) :: instant
    integer(c_int) :: ignored
    ignored = c_stop(timer%handle, instant)
  end subroutine

  ! The program has come to its end; without it a job's profile says that it did not finish.
  subroutine metric_proxy_end()
    integer(c_int) :: ignored
    if (c_associated(client)) ignored = c_release(client)
    client = c_null_ptr
  end subroutine

end module
