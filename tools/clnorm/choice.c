#include "choice.h"

#include <stdio.h>
#include <string.h>

#include "options.h"

static const struct cln_enum_option *all[CHOICES + 1]; /* ended by NULL */

static void add(const struct cln_enum_option *choice) {
    int count = 0;
    for (; all[count]; count++)
        if (!strcmp(all[count]->option, choice->option))
            return;
    all[count] = choice;
}

const struct cln_enum_option *choice_at(int i) {
    if (!all[0])
        for (const struct cln_operation *const *record = cln_operations; *record; record++)
            for (int k = 0; k < CLN_CHOICES && (*record)->choices[k]; k++)
                add((*record)->choices[k]);
    return all[i];
}

int choice_index(const char *option) {
    int i = 0;
    while (choice_at(i) && strcmp(choice_at(i)->option, option) != 0)
        i++;
    return i;
}

const struct cln_enum_option *choice_of(const struct cln_operation *record, const char *option) {
    for (int i = 0; record && i < CLN_CHOICES && record->choices[i]; i++)
        if (!strcmp(record->choices[i]->option, option))
            return record->choices[i];
    return NULL;
}

static size_t offset_of(const struct cln_operation *record, const struct cln_enum_option *choice) {
    const struct cln_field_rule *rule = record->fields;
    while (strcmp(rule->name, choice->field) != 0)
        rule++;
    return rule->offset;
}

uint32_t choice_initial(const struct cln_operation *record, const struct cln_enum_option *choice) {
    uint32_t value;
    memcpy(&value, (const char *)record->initial + offset_of(record, choice), sizeof value);
    return value;
}

enum { WORDS_TEXT = 64 };

/* "none|tanh". */
static void list_words(const struct cln_enum_option *choice, char text[WORDS_TEXT]) {
    size_t length = 0;
    for (int i = 0; i < CLN_WORDS && choice->words[i].word && length < WORDS_TEXT; i++)
        length += (size_t)snprintf(text + length, WORDS_TEXT - length, "%s%s", i ? "|" : "", choice->words[i].word);
}

void choices_add(struct poptOption *rows, struct choices *choices) {
    static char words[CHOICES][WORDS_TEXT];
    int i = 0;
    for (; choice_at(i); i++) {
        list_words(choice_at(i), words[i]);
        rows[i] = (struct poptOption){choice_at(i)->option, '\0',    POPT_ARG_STRING, &choices->word[i], 0,
                                      choice_at(i)->help,   words[i]};
    }
    rows[i] = (struct poptOption)POPT_TABLEEND;
}

static bool read_word(const struct cln_enum_option *choice, const char *word, uint32_t *value, struct fault *fault) {
    char words[WORDS_TEXT];
    char option[32];
    list_words(choice, words);
    (void)snprintf(option, sizeof option, "--%s", choice->option);
    const unsigned place = parse_word(option, word, words, fault);
    if (place)
        *value = choice->words[place - 1].value;
    return place;
}

bool choices_read(const struct cln_operation *record, const struct choices *choices, void *desc, struct fault *fault) {
    for (int i = 0; i < CLN_CHOICES && record->choices[i]; i++) {
        const struct cln_enum_option *const choice = record->choices[i];
        const char *const word = choices->word[choice_index(choice->option)];
        uint32_t value = 0;
        if (!word)
            continue;
        if (!read_word(choice, word, &value, fault))
            return false;
        memcpy((char *)desc + offset_of(record, choice), &value, sizeof value);
    }
    return true;
}
