/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz: what every target defines. libFuzzer calls it when the build is made with the preset `fuzz`; else replay.c
 * does, once for each file of the corpus, so that no target and no found input can rot.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Takes one input; ends the process when a promise is broken. Always returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
