/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commands: the pfw commands. Single-threaded programs: each reads files, prints, and leaves nothing behind.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

/* Each takes argv of its own ("info", "--json", …), which it may reorder, and returns an exit status of input.h. */
int commands_info(int argc, char **argv);
int commands_check(int argc, char **argv);
int commands_cat(int argc, char **argv);
int commands_stats(int argc, char **argv);
int commands_perfetto(int argc, char **argv);

#endif
