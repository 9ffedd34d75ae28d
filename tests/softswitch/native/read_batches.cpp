// Reads requests from a file and applies what can be, for sanitizers to watch. The file has 64-bit
// numbers: how many numbers the formats are, these, and of each request its length and bytes.
#include "program.h"
#include "interface.h"

#include <cstdio>

static bool next(FILE* file, void* place, size_t size) { return fread(place, 1, size, file) == size; }

int main(int, char** arguments) {
    FILE* const file = fopen(arguments[1], "rb");
    u64 size = 0, read = 0;
    if (!file || !next(file, &size, 8)) return 2;
    std::vector<u64> numbers(size);
    if (!next(file, numbers.data(), 8 * size)) return 2;
    Switch* const s = switch_new();
    Formats* const formats = formats_new(s, numbers.data());
    while (next(file, &size, 8)) {
        // Memory of its own for each, so that one byte too far is noticed.
        u8* const request = (u8*)malloc(size);
        if (!next(file, request, size)) return 2;
        if (Batch* const batch = batch_read(s, formats, request, size)) {
            for (u64 at = 0, end = batch_length(s, batch); at < end; at++) {
                const u64 begin = at;
                at = batch_apply(s, batch, at, end);
                read += at - begin;
            }
            batch_free(s, batch);
        }
        free(request);
    }
    Answer* const answer = answer_new(s);
    for (const TableFormat& each : formats->tables) {
        int number = 0;
        while (s->program.tables[number] != each.table) number++;
        answer_entries(s, answer, formats, each.id, table_memory(s, number), 0, table_length(s, number), &size);
    }
    answer_free(s, answer);
    formats_free(s, formats);
    switch_free(s);
    fclose(file);
    printf("%llu\n", read);
}
