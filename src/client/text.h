/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text: a text in memory of the caller's, which is cut rather than overrun. Never allocates. Header only.
 */
#ifndef CLIENT_TEXT_H
#define CLIENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    char *bytes;
    size_t length;
    size_t max;
    bool is_cut; /* something did not fit: nothing was added from then on */
};

/* An empty text in `bytes[max]`, borrowed for the text's life; `max` is at least 1. */
static inline struct text text_in(char *bytes, size_t max)
{
    return (struct text){.bytes = bytes, .max = max};
}

/* Adds all of `bytes`, or nothing from here on when they don't fit. */
static inline void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
    if (text->is_cut || length > text->max - text->length) {
        text->is_cut = true;
        return;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

/* The same with a string, without its NUL. */
static inline void text_add(struct text *text, const char *string)
{
    text_add_bytes(text, string, strlen(string));
}

/* The same with a number in decimal digits. */
static inline void text_add_u64(struct text *text, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    text_add_bytes(text, digits + at, sizeof digits - at);
}

/* Ends the text with a NUL, over its last byte if it is full. Returns it. */
static inline const char *text_end(struct text *text)
{
    if (text->length == text->max)
        text->length--;
    text->bytes[text->length] = '\0';
    return text->bytes;
}

#endif
