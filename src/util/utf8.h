/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * utf8: which bytes are strict UTF-8, and making text from outside fit for a terminal or a log.
 *
 * Strict means what the Unicode Standard allows (chapter 3.9, table 3-7): no overlong forms, no surrogates, nothing
 * above U+10FFFF. Any thread.
 */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H

#include <stddef.h>

/*
 * Length of the UTF-8 sequence at `bytes`, of which `left` (at least 1) may be read. 0 when it is not one, and then
 * `*out_bad` is the length of its maximal bad part ("U+FFFD Substitution of Maximal Subparts", the same chapter).
 */
size_t utf8_sequence(const unsigned char *bytes, size_t left, size_t *out_bad);

/*
 * Makes one printable line of `text` in place: control characters (newlines, terminal escapes, C1 controls) and
 * those that change the order of what is shown become blanks, bytes that are not UTF-8 become '?'. A sequence that a
 * cut left unfinished at the end is taken away. Returns the new length; NUL-terminates nothing.
 */
size_t utf8_clean_line(char *text, size_t length);

#endif
