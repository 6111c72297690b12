/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/auth_mac.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <string.h>

#include "util/buf.h"
#include "util/cursor.h"

enum { AUTH_MAC_TEXT_MAX_BYTES = 128 << 10 }; /* a target is bounded by what a server reads of a head */

static void auth_mac_hex(struct buf *out, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < length; i++) {
        buf_char(out, digits[bytes[i] >> 4]);
        buf_char(out, digits[bytes[i] & 15]);
    }
}

static int auth_mac_digit(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* A word of exactly `length` bytes in hexadecimal, lower case. */
static bool auth_mac_unhex(struct cursor *cursor, uint8_t *out_bytes, size_t length)
{
    struct cursor word;
    if (!cursor_word(cursor, &word) || cursor_left(&word) != 2 * length)
        return false;
    for (size_t i = 0; i < length; i++) {
        int high = auth_mac_digit(word.at[2 * i]), low = auth_mac_digit(word.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out_bytes[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* The mac that a request of `mac`'s time and nonce must have. */
static int auth_mac_compute(const struct auth_mac *mac, const void *key, size_t key_length,
                            const struct auth_mac_request *request, uint8_t out_bytes[AUTH_MAC_BYTES],
                            struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    uint8_t hash[SHA256_DIGEST_LENGTH];
    if (key_length > INT32_MAX || EVP_Digest(request->body_length > 0 ? request->body : "", request->body_length, hash,
                                             NULL, EVP_sha256(), NULL) != 1)
        return error_set(err, -EIO, "libcrypto has no SHA-256");
    buf_init(&text, AUTH_MAC_TEXT_MAX_BYTES);
    buf_printf(&text, "v1\n%s\n%s\n", request->method, request->target);
    auth_mac_hex(&text, hash, sizeof hash);
    buf_printf(&text, "\n%" PRIi64 "\n", mac->time_wall_ms);
    auth_mac_hex(&text, mac->nonce, sizeof mac->nonce);
    buf_char(&text, '\n');
    int rc = buf_status(&text, err);
    if (rc < 0)
        return rc;
    unsigned length = 0;
    if (HMAC(EVP_sha256(), key, (int)key_length, (const uint8_t *)text.data, text.length, out_bytes, &length) == NULL ||
        length != AUTH_MAC_BYTES)
        return error_set(err, -EIO, "libcrypto has no HMAC");
    return 0;
}

int auth_mac_sign(const void *key, size_t key_length, const struct auth_mac_request *request, int64_t now_wall_ms,
                  char out_value[AUTH_MAC_HEADER_MAX_BYTES], struct error *err)
{
    struct auth_mac mac = {.time_wall_ms = now_wall_ms};
    if (RAND_bytes(mac.nonce, sizeof mac.nonce) != 1)
        return error_set(err, -EIO, "libcrypto has no random bytes");
    int rc = auth_mac_compute(&mac, key, key_length, request, mac.mac, err);
    if (rc < 0)
        return rc;
    CLEANUP(buf_cleanup) struct buf value;
    buf_init(&value, AUTH_MAC_HEADER_MAX_BYTES - 1);
    buf_printf(&value, "v1 %" PRIi64 " ", mac.time_wall_ms);
    auth_mac_hex(&value, mac.nonce, sizeof mac.nonce);
    buf_char(&value, ' ');
    auth_mac_hex(&value, mac.mac, sizeof mac.mac);
    rc = buf_status(&value, err);
    if (rc == 0)
        memcpy(out_value, buf_string(&value), value.length + 1);
    return rc;
}

int auth_mac_parse(const char *value, struct auth_mac *out_mac, struct error *err)
{
    struct cursor cursor = {.at = value, .end = value + strlen(value)};
    struct cursor time;
    struct auth_mac mac = {0};
    uint64_t time_ms = 0;
    bool is_good = cursor_accept_text(&cursor, "v1 ") && cursor_word(&cursor, &time) && cursor_u64(&time, &time_ms) &&
                   cursor_is_empty(&time) && time_ms <= INT64_MAX &&
                   auth_mac_unhex(&cursor, mac.nonce, sizeof mac.nonce) &&
                   auth_mac_unhex(&cursor, mac.mac, sizeof mac.mac) && cursor_is_empty(&cursor);
    if (!is_good)
        return error_set(err, -EBADMSG, "%s is not 'v1 <time> <nonce> <mac>'", AUTH_MAC_HEADER);
    mac.time_wall_ms = (int64_t)time_ms;
    *out_mac = mac;
    return 0;
}

int auth_mac_verify(const struct auth_mac *mac, const void *key, size_t key_length,
                    const struct auth_mac_request *request, struct error *err)
{
    uint8_t wanted[AUTH_MAC_BYTES];
    int rc = auth_mac_compute(mac, key, key_length, request, wanted, err);
    if (rc < 0)
        return rc;
    if (CRYPTO_memcmp(wanted, mac->mac, sizeof wanted) != 0)
        return error_set(err, -EACCES, "%s does not fit the request: another token, or changed on its way",
                         AUTH_MAC_HEADER);
    return 0;
}
