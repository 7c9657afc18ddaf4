/* Reading JSON text in place: no tree, no copies, no heap. Every function stops at the end of the text, and after the
 * first failure all of them fail. Source: RFC 8259; numbers are whole numbers of 32 bits, other values can be skipped.
 * Part of aot-model. C99 and C++. */
#ifndef AOT_MODEL_JSON_READER_H
#define AOT_MODEL_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"

typedef struct {
    const char *at;
    const char *end;
    bool failed;
} aot_model_json;

/* A string as it is written, without its quotes: escapes are not resolved. */
typedef struct {
    const char *at;
    size_t size;
} aot_model_json_text;

static inline aot_model_json aot_model_json_open(const char *text, size_t size)
{
    aot_model_json json;
    json.at = text;
    json.end = text + size;
    json.failed = false;
    return json;
}

static inline bool aot_model_json_fail(aot_model_json *json)
{
    json->failed = true;
    json->at = json->end;
    return false;
}

static inline bool aot_model_json_same(aot_model_json_text text, const char *wanted)
{
    return text.size == strlen(wanted) && memcmp(text.at, wanted, text.size) == 0;
}

AOT_MODEL_FUNCTION void aot_model_json_space(aot_model_json *json)
{
    while (json->at != json->end && (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r')) {
        ++json->at;
    }
}

/* Whether the next character is this one, which is then behind the reader. */
static inline bool aot_model_json_accept(aot_model_json *json, char wanted)
{
    aot_model_json_space(json);
    if (json->at == json->end || *json->at != wanted) {
        return false;
    }
    ++json->at;
    return true;
}

static inline bool aot_model_json_expect(aot_model_json *json, char wanted)
{
    return aot_model_json_accept(json, wanted) || aot_model_json_fail(json);
}

AOT_MODEL_FUNCTION bool aot_model_json_string(aot_model_json *json, aot_model_json_text *text)
{
    if (!aot_model_json_expect(json, '"')) {
        return false;
    }
    text->at = json->at;
    while (json->at != json->end && *json->at != '"') {
        if (*json->at == '\\' && ++json->at == json->end) {
            break;
        }
        ++json->at;
    }
    text->size = (size_t)(json->at - text->at);
    return aot_model_json_expect(json, '"');
}

AOT_MODEL_FUNCTION bool aot_model_json_integer(aot_model_json *json, int32_t *value)
{
    const bool negative = aot_model_json_accept(json, '-');
    const char *const first = json->at;
    int64_t number = 0;

    while (json->at != json->end && *json->at >= '0' && *json->at <= '9') {
        number = number * 10 + (*json->at - '0');
        if (number > INT32_MAX) {
            return aot_model_json_fail(json);
        }
        ++json->at;
    }
    if (json->at == first || (json->at != json->end && (*json->at == '.' || *json->at == 'e' || *json->at == 'E'))) {
        return aot_model_json_fail(json);
    }
    *value = (int32_t)(negative ? -number : number);
    return true;
}

/* Steps through an array or an object whose bracket is behind the reader: true before each element, false at the end and
 * after a failure. `first` is true before the first call. */
static inline bool aot_model_json_more(aot_model_json *json, bool *first, char close)
{
    const bool begins = *first;
    *first = false;
    if (json->failed || aot_model_json_accept(json, close)) {
        return false;
    }
    return begins || aot_model_json_expect(json, ',');
}

/* The key of the next member of an object. */
static inline bool aot_model_json_member(aot_model_json *json, bool *first, aot_model_json_text *key)
{
    return aot_model_json_more(json, first, '}') && aot_model_json_string(json, key) && aot_model_json_expect(json, ':');
}

/* An array of at most `limit` whole numbers; `count` says how many there are. */
AOT_MODEL_FUNCTION bool aot_model_json_integers(aot_model_json *json, int32_t *values, int32_t limit, int32_t *count)
{
    bool first = true;
    *count = 0;
    if (!aot_model_json_expect(json, '[')) {
        return false;
    }
    while (aot_model_json_more(json, &first, ']')) {
        if (*count == limit) {
            return aot_model_json_fail(json);
        }
        if (aot_model_json_integer(json, &values[*count])) {
            ++*count;
        }
    }
    return !json->failed;
}

/* Pass over one value of any kind; inside of arrays and objects only strings and brackets are looked at. */
AOT_MODEL_FUNCTION bool aot_model_json_skip(aot_model_json *json)
{
    uint32_t depth = 0;
    do {
        aot_model_json_text text;
        aot_model_json_space(json);
        if (json->at == json->end) {
            return aot_model_json_fail(json);
        }
        if (*json->at == '"') {
            if (!aot_model_json_string(json, &text)) {
                return false;
            }
        } else if (*json->at == '{' || *json->at == '[') {
            ++depth;
            ++json->at;
        } else if (*json->at == '}' || *json->at == ']') {
            if (depth == 0u) {
                return aot_model_json_fail(json);
            }
            --depth;
            ++json->at;
        } else if (depth != 0u) {
            ++json->at;
        } else {
            const char *const begin = json->at;
            while (json->at != json->end && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *json->at) != NULL && *json->at != '\0') {
                ++json->at;
            }
            if (json->at == begin) {
                return aot_model_json_fail(json);
            }
        }
    } while (depth != 0u);
    return true;
}

#endif
