/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commands: the pfw commands: each takes its own name and arguments and returns an exit status (enum input_status).
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

int commands_info(int argc, char **argv);
int commands_check(int argc, char **argv);
int commands_cat(int argc, char **argv);
int commands_stats(int argc, char **argv);
int commands_perfetto(int argc, char **argv);

#endif
