/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/unit.h"

static const struct {
    const char *name;
    int64_t ns;
} units[] = {
    [PFW_UNIT_UNKNOWN] = {"", 1000}, [PFW_UNIT_SEC] = {"SEC", 1000000000},
    [PFW_UNIT_MS] = {"MS", 1000000}, [PFW_UNIT_US] = {"US", 1000},
    [PFW_UNIT_NS] = {"NS", 1},
};

const char *pfw_unit_name(enum pfw_unit unit)
{
    return units[unit].name;
}

enum pfw_unit pfw_unit_parse(const struct pfw_json *text)
{
    for (enum pfw_unit unit = PFW_UNIT_SEC; unit <= PFW_UNIT_NS; unit++) {
        if (text->kind == PFW_JSON_STRING && cursor_equals_any_case(&text->text, units[unit].name))
            return unit;
    }
    return PFW_UNIT_UNKNOWN;
}

enum pfw_unit pfw_unit_guess(int64_t ts)
{
    if (ts < INT64_C(100000000))
        return PFW_UNIT_US;
    if (ts < INT64_C(100000000000))
        return PFW_UNIT_SEC;
    if (ts < INT64_C(100000000000000))
        return PFW_UNIT_MS;
    if (ts < INT64_C(100000000000000000))
        return PFW_UNIT_US;
    return PFW_UNIT_NS;
}

int64_t pfw_unit_to_ns(enum pfw_unit unit, int64_t ts)
{
    int64_t ns;
    if (__builtin_mul_overflow(ts, units[unit].ns, &ns))
        return ts < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

/* What the trace itself says in this line. */
static enum pfw_unit unit_told(const struct pfw_line *line)
{
    if (!pfw_json_equals(&line->category, "dftracer"))
        return PFW_UNIT_UNKNOWN;
    struct pfw_json text = {0};
    if (pfw_json_equals(&line->name, "start") || pfw_json_equals(&line->name, "end")) {
        struct pfw_json settings = pfw_member(&line->args, "cfg");
        text = pfw_member(&line->args, "time_metric");
        if (text.kind == PFW_JSON_NONE)
            text = pfw_member(&settings, "time_metric");
    } else if (pfw_json_equals(&line->name, "CM") || pfw_json_equals(&line->name, "PR")) {
        struct pfw_json name = pfw_member(&line->args, "name");
        if (pfw_json_equals(&name, "time_metric"))
            text = pfw_member(&line->args, "value");
    }
    return pfw_unit_parse(&text);
}

void pfw_unit_observe(struct pfw_unit_of_trace *state, const struct pfw_line *line)
{
    enum pfw_unit told = unit_told(line);
    if (told != PFW_UNIT_UNKNOWN) {
        *state = (struct pfw_unit_of_trace){.unit = told, .is_told = true};
        return;
    }
    if (state->unit == PFW_UNIT_UNKNOWN && line->ts.is_present && line->ts.value != 0)
        state->unit = pfw_unit_guess(line->ts.value);
}
