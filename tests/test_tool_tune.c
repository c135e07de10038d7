/* `clnorm tune` as scripts see it: searches, grids, and their files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool_process.h"

static void test_tune(void **state) {
    (void)state;
    run_in("env CLNORM_TUNING=tuned", "%s", "tune rms_norm layer_norm_backward --shapes 16x64 --dtypes bf16 --seconds 0.2");
    assert_done();
    assert_says("rms_norm                16x64       bf16");
    assert_says("tuned: ");
    assert_narrow();
    run_in("env CLNORM_TUNING=tuned", "%s", "run layer_norm --in \"$CLNORM_SAMPLE\" --verify"); /* a valid tuning file */
    assert_done();
    run("%s", "tune rms_norm --seconds 0 --out tuned");
    assert_failed(EXIT_REQUEST, "--seconds 0");
    run("%s", "tune rms_norm --shapes 4x64");
    assert_failed(EXIT_REQUEST, "--out");
}

/* Of the line of an operation: the configs that were tried and those that were wrong. */
static void count_tries(const char *operation, unsigned *tried, unsigned *wrong) {
    const char *const line = strstr(result.out, operation);
    assert_non_null(line);
    assert_int_equal(sscanf(line, "%*s %*s %*s %*f %*f %u %*u %u", tried, wrong), 2);
}

/* A faster config is compared on tensors such as those that are timed: 8-bit ones with scales, heads with RoPE. */
static void test_tune_compares_what_it_times(void **state) {
    (void)state;
    static const char *const operations[] = {"fp8_rms_norm", "rms_norm_rope"};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        unsigned tried, wrong;
        run("tune %s --shapes 64x1024 --dtypes f32 --seconds 5 --out fits", operations[i]);
        assert_done();
        count_tries(operations[i], &tried, &wrong);
        assert_true(tried > 0);
        assert_int_equal(wrong, 0);
    }
}

/* The grid has a row for each point. A second run measures only missing points. */
static void test_tune_grid(void **state) {
    (void)state;
    run("%s", "tune rms_norm softmax --grid --widths 64,100 --bytes 16K --dtypes f32 --jobs 2 --out grid");
    assert_done();
    assert_says("grid: 4 points measured, 0 skipped");
    run("%s", "tune rms_norm softmax --grid --widths 64,96 --bytes 16K --dtypes f32 --out grid");
    assert_says("grid: 2 points measured, 2 skipped");
    run("%s", "tune quantize softmax --grid --widths 64 --bytes 16K --dtypes f64 --out grid");
    assert_int_equal(result.code, EXIT_DONE);
    assert_non_null(strstr(result.err, "clnorm: quantize f64 is left out: "));
    assert_says("grid: 1 point measured, 1 skipped");
    run("%s", "tune rms_norm --grid --widths 64");
    assert_failed(EXIT_REQUEST, "--grid: expected --out FILE");
    run("%s", "tune rms_norm --grid --widths 64,,96 --out grid");
    assert_failed(EXIT_REQUEST, "--widths 64,,96: expected");
    run("%s", "tune rms_norm --grid --jobs 0 --out grid");
    assert_failed(EXIT_REQUEST, "--jobs 0");
}

/* Replaces a file's text by a sed script. */
static void edit(const char *script, const char *path) {
    char command[256];
    (void)snprintf(command, sizeof command, "sed -i '%s' %s", script, path);
    assert_int_equal(system(command), 0);
}

/* Runs a grid of gelu with these further words. */
static void run_grid(const char *words) {
    run("tune gelu --grid --bytes 16K --dtypes f32 %s", words);
}

static void test_tune_grid_refuses_other_files(void **state) {
    (void)state;
    static char before[MOST_TEXT];
    static char after[MOST_TEXT];
    run_grid("--widths 64,96 --out moved");
    assert_done();
    edit("s/^match .*/match platform=other vector=3/", "moved");
    read_text("moved", before);
    run_grid("--widths 128 --out moved");
    assert_failed(EXIT_REQUEST, "moved: 'match platform=other vector=3'; expected 'match platform=");
    read_text("moved", after);
    assert_string_equal(before, after);
    run_grid("--widths 64 --out moved --force");
    assert_done();
    assert_says("moved: 1 point measured, 0 skipped");
    assert_int_equal(system("! grep -q vector=3 moved && ! grep -q ' 96' moved && grep -q '^gelu f32 64' moved"), 0);

    assert_int_equal(system("printf nonsense >words"), 0);
    run_grid("--widths 64 --out words");
    assert_failed(EXIT_REQUEST, "words: expected a file of clnorm tune --grid");
    assert_int_equal(system("[ \"$(cat words)\" = nonsense ]"), 0);

    assert_int_equal(system("mkfifo fifo"), 0);
    run_grid("--widths 64 --out fifo");
    assert_failed(EXIT_REQUEST, "fifo: expected a regular file, whose rows can be read again");
    run_grid("--widths 64 --out /dev/null");
    assert_failed(EXIT_REQUEST, "/dev/null: expected a regular file");
}

/* --force replaces a file by the first new row only. */
static void test_tune_grid_keeps_rows_until_there_are_new_ones(void **state) {
    (void)state;
    assert_int_equal(system("printf 'nonsense\\n' >old"), 0);
    run("%s", "tune quantize --grid --widths 64 --bytes 16K --dtypes f64 --out old --force");
    assert_failed(EXIT_REQUEST, "F64");
    assert_int_equal(system("[ \"$(cat old)\" = nonsense ]"), 0);
    run("%s", "tune quantize --grid --widths 64 --bytes 16K --dtypes f64 --out none");
    assert_failed(EXIT_REQUEST, "F64");
    assert_int_equal(system("[ ! -e none ]"), 0);
}

static void test_tune_grid_refuses_damaged_rows(void **state) {
    (void)state;
    run_grid("--widths 64,96 --out good");
    assert_done();
    static const struct {
        const char *damage, *expected;
    } damages[] = {
        {"sed 's/vec=/vec=banana/' good >bad", "bad: line 4: vec=banana"},
        {"sed 's/: vec/ vec/' good >bad", "bad: line 4: expected OPERATION DTYPE COLUMNS: KNOB=VALUE"},
        {"tr v '\\000' <good >bad", "bad: expected a file of text, without NUL"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        assert_int_equal(system(damages[i].damage), 0);
        assert_int_equal(system("cp bad copy"), 0);
        run_grid("--widths 64,96,128 --out bad");
        assert_failed(EXIT_REQUEST, damages[i].expected);
        assert_int_equal(system("cmp -s bad copy"), 0);
    }
}

/* Of two runs one writes a file. */
static void test_tune_grid_writes_alone(void **state) {
    (void)state;
    run_grid("--widths 64 --out alone");
    assert_done();
    run_in("exec 9>>alone; flock -n 9; exec", "%s",
           "tune gelu --grid --bytes 16K --dtypes f32 --widths 64,128 --out alone");
    assert_failed(EXIT_REQUEST, "alone: another clnorm writes it");
}

/* A row without its end, which a grid that was killed may leave, is dropped, and its point measured again. */
static void test_tune_grid_drops_a_cut_row(void **state) {
    (void)state;
    run_grid("--widths 64,96 --out cut");
    assert_done();
    assert_int_equal(system("truncate -s -20 cut"), 0);
    run_grid("--widths 64,96,128 --out cut");
    assert_done();
    assert_says("cut: 2 points measured, 1 skipped");
    assert_int_equal(system("[ $(grep -c '^gelu f32 .* us$' cut) -eq 3 ] && [ $(wc -l <cut) -eq 6 ]"), 0);
}

static void test_tune_skips_widths(void **state) {
    (void)state;
    run("%s", "tune gelu rms_norm_rope --grid --widths 257,64 --bytes 16K --dtypes f32 --out skipped");
    assert_int_equal(result.code, EXIT_DONE);
    assert_says("skipped: 3 points measured, 0 skipped");
    assert_string_equal(result.err, "clnorm: rms_norm_rope needs an even number of columns; skipped at 257\n");
    run("%s", "tune rms_norm_rope --shapes 4x64,4x3 --out skipped");
    assert_failed(EXIT_REQUEST, "--shapes 4x3: rms_norm_rope needs an even number of columns");
}

static void test_tune_refuses_options_of_the_other_mode(void **state) {
    (void)state;
    static const struct refused_words wrong[] = {
        {"--widths 64", "--widths: expected --grid too"},         {"--bytes 16K", "--bytes: expected --grid too"},
        {"--candidates 2", "--candidates: expected --grid too"},  {"--jobs 2", "--jobs: expected --grid too"},
        {"--candidates 0", "--candidates: expected --grid too"},  {"--jobs 1", "--jobs: expected --grid too"},
        {"--grid --shapes 4x64", "--shapes: expected no --grid"}, {"--grid --seconds 1", "--seconds: expected no --grid"},
        {"--grid --seconds 20", "--seconds: expected no --grid"}};
    assert_each_refused("tune gelu --out mode", wrong, sizeof wrong / sizeof *wrong);
}

/* The processes that compile ahead end with the one that measures. One that has ended may stay as a zombie. */
static void test_tune_compilers_end(void **state) {
    (void)state;
    run("%s",
        "tune --grid --jobs 3 --out ended & for i in $(seq 200); do children=$(cat /proc/$!/task/$!/children); "
        "[ -n \"$children\" ] && break; sleep 0.05; done; sleep 0.5; kill $!; wait $!; code=$?; [ -n \"$children\" ] || exit 1; "
        "for i in $(seq 200); do left=0; for child in $children; do "
        "grep -q '^State:.[^ZX]' /proc/$child/status && left=1; done; [ $left = 0 ] && exit $code; sleep 0.05; done; "
        "kill $children; exit 1");
    assert_int_equal(result.code, 128 + SIGTERM);
}

/* Refused before anything is measured: stdout is empty. */
static void assert_tune_refuses(const char *path, const char *part) {
    run("tune rms_norm --shapes 4x64 --out %s", path);
    assert_failed(EXIT_REQUEST, part);
    assert_string_equal(result.out, "");
}

static void test_tune_refuses_first(void **state) {
    (void)state;
    assert_int_equal(system("mkfifo tuning-fifo; echo nonsense >tuning-text; mkdir -m 0500 tuning-folder"), 0);
    assert_tune_refuses("tuning-fifo", "tuning-fifo: not a regular file");
    assert_tune_refuses("tuning-folder", "tuning-folder: not a regular file");
    assert_tune_refuses("tuning-text", "tuning-text: line 1: 'nonsense'; expected 'clnorm tuning 1'");
    assert_tune_refuses("/proc/none/tuned", "/proc/none/tuned: cannot be written");
    assert_tune_refuses("/proc/tuned", "/proc/tuned: cannot be written"); /* a folder that even root cannot write to */
    assert_int_equal(system("grep -q nonsense tuning-text"), 0);
}

/* A row is in the file as soon as it is found: a search that is ended leaves the rows so far. */
static void test_tune_saves_each_row(void **state) {
    (void)state;
    run("%s", "tune rms_norm softmax gelu --shapes 16x64,16x128 --dtypes f32 --seconds 2 --out saved & "
              "while ! [ -s saved ] && kill -0 $!; do sleep 0.05; done; kill $!; wait $!");
    assert_int_equal(result.code, 128 + SIGTERM);
    assert_int_equal(system("grep -q '^clnorm tuning 1$' saved && ! ls saved.* 2>/dev/null"), 0);
}

/* On a terminal tune shows progress and remaining time, in lines that do not wrap. */
static void test_tune_shows_progress(void **state) {
    (void)state;
    run_in("script -qec '", "tune rms_norm softmax --shapes 16x64 --dtypes f32 --seconds 0.3 --out shown' /dev/null");
    assert_int_equal(result.code, EXIT_DONE);
    assert_says("\r\x1b[K1 of 2, about 1 s left: rms_norm 16x64 f32, ");
    assert_says("\r\x1b[K2 of 2, about ");
    for (const char *line = strstr(result.out, "\x1b[K"); line; line = strstr(line + 3, "\x1b[K"))
        assert_in_range(strcspn(line + 3, "\r\n"), 0, 79);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tune),
        cmocka_unit_test(test_tune_compares_what_it_times),
        cmocka_unit_test(test_tune_grid),
        cmocka_unit_test(test_tune_grid_refuses_other_files),
        cmocka_unit_test(test_tune_grid_keeps_rows_until_there_are_new_ones),
        cmocka_unit_test(test_tune_grid_refuses_damaged_rows),
        cmocka_unit_test(test_tune_grid_writes_alone),
        cmocka_unit_test(test_tune_grid_drops_a_cut_row),
        cmocka_unit_test(test_tune_skips_widths),
        cmocka_unit_test(test_tune_refuses_options_of_the_other_mode),
        cmocka_unit_test(test_tune_compilers_end),
        cmocka_unit_test(test_tune_refuses_first),
        cmocka_unit_test(test_tune_saves_each_row),
        cmocka_unit_test(test_tune_shows_progress),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
