/* A plug-in of QEMU (TCG, API version 1 or later) that counts what a model of a core's time needs of a run.
 *
 * From the first instruction of a function (`entry=`) until it returns to its caller it counts how often each block of
 * instructions ran after which other, for which layer; data accesses that are not aligned; and misses of an instruction
 * and a data cache. After `skip=` calls of the function, `runs=` of them are added up; then it writes to `out=`, addresses
 * in hexadecimal:
 *
 *   block  ID ADDRESS INSTRUCTIONS
 *   edge   FROM TO LAYER COUNT MISPREDICTED LINE_MISSES        FROM -1: the function was entered
 *   access ADDRESS LAYER EXTRA_BEATS LOAD_MISSES STORE_MISSES    of one instruction
 *   end
 *
 * `code=FILE` has a line `ADDRESS SIZE CONDITIONAL LAYER` for each instruction: LAYER is -1 where that is what the caller
 * is at. Only functions of the API that have been the same since its first version are called; they are declared here,
 * since distributions ship no header. Built by trace.py with the C compiler of the machine that runs QEMU.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
typedef void (*translated_callback)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed_callback)(unsigned, void *);
typedef void (*memory_callback)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *);
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated_callback);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, executed_callback, int, void *);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, memory_callback, int, int, void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
extern unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
extern bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);

#ifndef API_VERSION
#define API_VERSION 1
#endif
EXPORT int qemu_plugin_version = API_VERSION;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv);

enum { NO_CALLBACK_FLAGS = 0, READS_AND_WRITES = 3, BUCKETS = 1 << 16 };
#define RAM UINT64_C(0x20000000) /* memory of Cortex-M begins here; below it is flash */

/* ---- caches: least recently used of a set goes ---- */

struct cache {
    uint64_t line, ways, sets, clock, *tags, *used;
};

static bool misses(struct cache *cache, uint64_t address)
{
    const uint64_t tag = address / cache->line + 1, first = (tag % cache->sets) * cache->ways;
    uint64_t oldest = first;
    for (uint64_t way = first; way < first + cache->ways; way++) {
        if (cache->tags[way] == tag) {
            cache->used[way] = ++cache->clock;
            return false;
        }
        if (cache->used[way] < cache->used[oldest]) {
            oldest = way;
        }
    }
    cache->tags[oldest] = tag;
    cache->used[oldest] = ++cache->clock;
    return true;
}

static bool make_cache(struct cache *cache, const char *text)
{
    uint64_t bytes;
    if (sscanf(text, "%" SCNu64 ":%" SCNu64 ":%" SCNu64, &bytes, &cache->line, &cache->ways) != 3 || cache->line == 0 || cache->ways == 0 ||
        bytes < cache->line * cache->ways) {
        return false;
    }
    cache->sets = bytes / cache->line / cache->ways;
    cache->tags = calloc(cache->sets * cache->ways, sizeof *cache->tags);
    cache->used = calloc(cache->sets * cache->ways, sizeof *cache->used);
    return cache->tags != NULL && cache->used != NULL;
}

/* ---- what is counted ---- */

struct access {
    int layer;
    uint64_t extra, loads, stores;
    struct access *next;
};

struct instruction {
    uint64_t address;
    unsigned size;
    bool conditional;
    int layer;
    struct access *accesses;
    struct instruction *next;
};

struct edge {
    int from, layer;
    uint64_t count, mispredicted, misses;
    struct edge *next;
};

struct block {
    int id, layer;
    uint64_t start, end;
    size_t instructions;
    bool conditional; /* its last instruction is a conditional branch, whose two-bit counter is here */
    unsigned counter;
    struct edge *edges;
    struct block *next;
};

static struct cache lines, data;
static bool data_of_flash_only, active;
static uint64_t entry, back, skip, runs = 1, counted;
static struct instruction *instructions[BUCKETS];
static struct block *blocks[BUCKETS], *last;
static int block_count, layer = -1;
static FILE *out;

static void *make(size_t bytes)
{
    void *const made = calloc(1, bytes);
    if (made == NULL) {
        exit(3);
    }
    return made;
}

static unsigned bucket(uint64_t address)
{
    return (unsigned)((address >> 1) ^ (address >> 17)) % BUCKETS;
}

static struct instruction *find_instruction(uint64_t address)
{
    struct instruction *found = instructions[bucket(address)];
    while (found != NULL && found->address != address) {
        found = found->next;
    }
    return found;
}

static bool read_code(const char *name)
{
    FILE *const file = fopen(name, "r");
    struct instruction one = {0};
    unsigned conditional;
    if (file == NULL) {
        return false;
    }
    while (fscanf(file, "%" SCNx64 " %u %u %d", &one.address, &one.size, &conditional, &one.layer) == 4) {
        struct instruction *const made = make(sizeof *made);
        one.conditional = conditional != 0;
        one.next = instructions[bucket(one.address)];
        *made = one;
        instructions[bucket(one.address)] = made;
    }
    fclose(file);
    return true;
}

/* ---- as it runs ---- */

static void count(struct block *block, int from)
{
    const bool follows = from >= 0;
    bool mispredicted = false;
    struct edge *edge = block->edges, **place = &block->edges;
    if (follows && last->conditional) {
        const bool taken = block->start != last->end;
        mispredicted = taken != (last->counter >= 2);
        last->counter = taken ? last->counter + (last->counter < 3) : last->counter - (last->counter > 0);
    }
    if (block->layer >= 0) {
        layer = block->layer;
    }
    while (edge != NULL && (edge->from != from || edge->layer != layer)) {
        place = &edge->next;
        edge = edge->next;
    }
    if (edge == NULL) {
        edge = make(sizeof *edge);
        edge->from = from;
        edge->layer = layer;
    } else {
        *place = edge->next;
    }
    edge->next = block->edges; /* the next to be found is likely the same */
    block->edges = edge;
    edge->count++;
    edge->mispredicted += mispredicted;
    if (lines.line != 0) {
        for (uint64_t line = block->start / lines.line; line <= (block->end - 1) / lines.line; line++) {
            edge->misses += misses(&lines, line * lines.line);
        }
    }
}

static void write_counts(void)
{
    for (int k = 0; k < BUCKETS; k++) {
        for (const struct block *block = blocks[k]; block != NULL; block = block->next) {
            if (block->edges != NULL) {
                fprintf(out, "block %d %" PRIx64 " %zu\n", block->id, block->start, block->instructions);
            }
            for (const struct edge *edge = block->edges; edge != NULL; edge = edge->next) {
                fprintf(out, "edge %d %d %d %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", edge->from, block->id, edge->layer, edge->count, edge->mispredicted,
                        edge->misses);
            }
        }
        for (const struct instruction *one = instructions[k]; one != NULL; one = one->next) {
            for (const struct access *access = one->accesses; access != NULL; access = access->next) {
                fprintf(out, "access %" PRIx64 " %d %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", one->address, access->layer, access->extra, access->loads,
                        access->stores);
            }
        }
    }
    fputs("end\n", out);
    fclose(out);
}

static void on_block(unsigned cpu, void *context)
{
    struct block *const block = context;
    (void)cpu;
    if (active && block->start == back) {
        active = false;
        if (++counted == runs) {
            write_counts();
        }
    }
    if (!active && block->start == entry && last != NULL && counted < runs) {
        if (skip > 0) {
            skip--;
        } else {
            active = true;
            back = last->end;
            layer = -1;
            count(block, -1);
        }
    } else if (active) {
        count(block, last->id);
    }
    last = block;
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *context)
{
    struct instruction *const instruction = context;
    const unsigned size = 1u << qemu_plugin_mem_size_shift(info);
    const unsigned extra = size == 2 ? address & 1 : size == 4 ? (address & 1 ? 2 : (address & 3) != 0) : 0;
    const bool cached = data.line != 0 && (address < RAM || !data_of_flash_only);
    const bool missed = active && cached && misses(&data, address);
    struct access *access = instruction->accesses;
    (void)cpu;
    if (!active || (extra == 0 && !missed)) {
        return;
    }
    while (access != NULL && access->layer != layer) {
        access = access->next;
    }
    if (access == NULL) {
        access = make(sizeof *access);
        access->layer = layer;
        access->next = instruction->accesses;
        instruction->accesses = access;
    }
    access->extra += extra;
    if (missed && qemu_plugin_mem_is_store(info)) {
        access->stores++;
    } else if (missed) {
        access->loads++;
    }
}

static struct block *find_block(struct block block)
{
    struct block **const first = &blocks[bucket(block.start + 64 * block.instructions)];
    struct block *found = *first;
    while (found != NULL && (found->start != block.start || found->instructions != block.instructions)) {
        found = found->next;
    }
    if (found == NULL) {
        found = make(sizeof *found);
        block.id = block_count++;
        block.counter = 1;
        block.next = *first;
        *found = block;
        *first = found;
    }
    return found;
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    struct block block = {.layer = -1, .instructions = qemu_plugin_tb_n_insns(tb)};
    (void)id;
    for (size_t k = 0; k < block.instructions; k++) {
        struct qemu_plugin_insn *const insn = qemu_plugin_tb_get_insn(tb, k);
        struct instruction *const known = find_instruction(qemu_plugin_insn_vaddr(insn));
        if (k == 0) {
            block.start = qemu_plugin_insn_vaddr(insn);
        }
        if (known == NULL) {
            continue;
        }
        block.end = known->address + known->size;
        block.conditional = known->conditional;
        if (known->layer >= 0) {
            block.layer = known->layer;
        }
        qemu_plugin_register_vcpu_mem_cb(insn, on_access, NO_CALLBACK_FLAGS, READS_AND_WRITES, known);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_CALLBACK_FLAGS, find_block(block));
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    for (int k = 0; k < argc; k++) {
        const char *const value = strchr(argv[k], '=');
        const size_t name = value == NULL ? 0 : (size_t)(value - argv[k]);
        bool good = true;
#define IS(word) (name == strlen(word) && strncmp(argv[k], word, name) == 0)
        if (IS("out")) {
            good = (out = fopen(value + 1, "w")) != NULL;
        } else if (IS("code")) {
            good = read_code(value + 1);
        } else if (IS("entry")) {
            entry = strtoull(value + 1, NULL, 16);
        } else if (IS("skip")) {
            skip = strtoull(value + 1, NULL, 10);
        } else if (IS("runs")) {
            runs = strtoull(value + 1, NULL, 10);
        } else if (IS("lines")) {
            good = make_cache(&lines, value + 1);
        } else if (IS("data")) {
            good = make_cache(&data, value + 1);
        } else if (IS("flash")) {
            data_of_flash_only = strcmp(value + 1, "1") == 0;
        } else {
            good = false;
        }
        if (!good) {
            fprintf(stderr, "aot-model: argument of the plug-in: %s\n", argv[k]);
            return -1;
        }
    }
    if (out == NULL) {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    return 0;
}
