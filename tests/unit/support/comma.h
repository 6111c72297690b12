/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comma: a locale whose decimal point is a comma and that groups thousands by points, as users' programs set them.
 *
 * It is made by localedef(1) in a scratch directory, so that no machine needs one installed. In tests.cmake:
 * DEPENDS test_support. Changes the locale of the whole process: one thread.
 *
 *     if (!comma_enter(&scratch))
 *         skip();
 *     ...
 *     comma_leave();
 */
#ifndef SUPPORT_COMMA_H
#define SUPPORT_COMMA_H

#include <stdbool.h>

#include "support/scratch.h"

/* Sets it for LC_ALL; false when this machine has no localedef. */
bool comma_enter(const struct scratch *scratch);

/* Back to "C". */
void comma_leave(void);

#endif
