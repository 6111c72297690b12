/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy_commands: the commands of `cicada`. Single-threaded programs: each asks a proxy and prints.
 */
#ifndef CLI_PROXY_COMMANDS_H
#define CLI_PROXY_COMMANDS_H

/* Each takes argv of its own ("jobs", "--json", …), which it may reorder, and returns an exit status of
 * proxy_command.h. */
int proxy_commands_jobs(int argc, char **argv);
int proxy_commands_top(int argc, char **argv);
int proxy_commands_metrics(int argc, char **argv);
int proxy_commands_profiles(int argc, char **argv);
int proxy_commands_topo(int argc, char **argv);
int proxy_commands_doctor(int argc, char **argv);

#endif
