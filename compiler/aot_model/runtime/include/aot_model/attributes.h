/* How compilers are told what generated code needs of them. Part of aot-model. C99 and C++.
 *
 * All that we generate has the same shape: many pointers into one workspace, and loops over them. GCC 12.1-12.3 and
 * 13.1-13.2 (bug 110702) may conclude that such a function reads or writes less than it does; its callers then drop the
 * call, or the stores before it. docs/compilers.md tells the whole story. Every function with a loop over memory is
 * therefore one of these:
 *
 * AOT_MODEL_OPAQUE, AOT_MODEL_FUNCTION: nothing that a compiler finds out about the body may be used where it is called,
 * and nothing of the call in the body.
 * AOT_MODEL_BARRIER is its first and its last statement, and stands before each return: no conclusion about a function
 * is possible that has a statement of which the compiler must assume that it reads and writes all memory. The first is
 * reached whatever follows; the last stays with the loops where GCC splits a function.
 * AOT_MODEL_INLINE: it is part of such a function. */
#ifndef AOT_MODEL_ATTRIBUTES_H
#define AOT_MODEL_ATTRIBUTES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Operands of less than 32 bits are computed in int. Where that has 16 (AVR, MSP430), products and sums would overflow
 * without a word; C also leaves open whether a negative number stays negative when it is shifted right. */
#ifdef INT_MAX
#if CHAR_BIT != 8 || INT_MAX < 2147483647
#error "generated C needs bytes of 8 bits and an int of at least 32: this processor's are smaller"
#endif
#endif
#if (-1 >> 1) != -1
#error "generated C needs a compiler that shifts negative numbers arithmetically"
#endif

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define AOT_MODEL_OPAQUE __attribute__((noipa))
#elif defined(__GNUC__) && !defined(__clang__)
#define AOT_MODEL_OPAQUE __attribute__((noinline, noclone))
#else
#define AOT_MODEL_OPAQUE
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define AOT_MODEL_BARRIER __asm__ volatile("" : : : "memory")
#else
#define AOT_MODEL_BARRIER (void)0
#endif

/* A condition that is hardly ever met. */
#if defined(__GNUC__)
#define AOT_MODEL_SELDOM(x) __builtin_expect((x), 0)
#else
#define AOT_MODEL_SELDOM(x) (x)
#endif

/* For processors whose compilers make vectors of loops over floats there are functions without branches. Not where compilers may
 * add in another order (-Ofast: they call vector functions of the C library), or compute in more bits (x87). */
#if (defined(__SSE2__) || defined(__aarch64__) || defined(__riscv_vector)) && !defined(__FAST_MATH__)
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 0
#define AOT_MODEL_FLOAT_LANES
#endif
#endif

/* What is written where numbers of another type are read. To compilers such accesses never meet; a loop may then be divided
 * into one that writes and one that reads what is gone (GCC 12 at -O3 does). */
#if defined(__GNUC__)
#define AOT_MODEL_ANY(type) typedef type aot_model_any_##type __attribute__((may_alias))
#else
#define AOT_MODEL_ANY(type) typedef type aot_model_any_##type
#endif
AOT_MODEL_ANY(bool);
AOT_MODEL_ANY(int8_t);
AOT_MODEL_ANY(uint8_t);
AOT_MODEL_ANY(int16_t);
AOT_MODEL_ANY(uint16_t);
AOT_MODEL_ANY(int32_t);
AOT_MODEL_ANY(uint32_t);
AOT_MODEL_ANY(int64_t);
AOT_MODEL_ANY(uint64_t);
AOT_MODEL_ANY(float);
AOT_MODEL_ANY(double);

/* In a loop whose sums of floats read backwards: GCC 12 adds other elements where it turns such a loop into vectors.
 * Nothing is executed for it. */
#if defined(__GNUC__) && !defined(__clang__) && (!defined(__arm__) || defined(__ARM_FEATURE_MVE) || defined(__ARM_NEON))
#define AOT_MODEL_IN_ORDER __asm__ volatile("")
#else
#define AOT_MODEL_IN_ORDER (void)0
#endif

/* A function in a header that is too large for every call. */
#if defined(__GNUC__) && !defined(__clang__)
#define AOT_MODEL_FUNCTION AOT_MODEL_OPAQUE static __attribute__((unused))
#else
#define AOT_MODEL_FUNCTION static inline
#endif

/* A function that is assembly from its first instruction to its last: the arguments are in the registers of the procedure
 * call standard. Compilers put code of their own in front of it where they watch stacks, count or trace calls, and take
 * registers for it that hold arguments; what each of them has against that is asked for. */
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define AOT_MODEL_NO_STACK_PROTECTOR , no_stack_protector
#endif
#if __has_attribute(no_profile_instrument_function)
#define AOT_MODEL_NO_PROFILE , no_profile_instrument_function
#endif
#if __has_attribute(no_sanitize_coverage)
#define AOT_MODEL_NO_COVERAGE , no_sanitize_coverage
#endif
#endif
#ifndef AOT_MODEL_NO_STACK_PROTECTOR
#define AOT_MODEL_NO_STACK_PROTECTOR
#endif
#ifndef AOT_MODEL_NO_PROFILE
#define AOT_MODEL_NO_PROFILE
#endif
#ifndef AOT_MODEL_NO_COVERAGE
#define AOT_MODEL_NO_COVERAGE
#endif
#define AOT_MODEL_NAKED                                       \
    __attribute__((naked, noinline, used, no_instrument_function \
                   AOT_MODEL_NO_STACK_PROTECTOR AOT_MODEL_NO_PROFILE AOT_MODEL_NO_COVERAGE))

/* A function that is part of those that call it. */
#if defined(__GNUC__) || defined(__clang__)
#define AOT_MODEL_INLINE static inline __attribute__((always_inline, unused, no_instrument_function))
#else
#define AOT_MODEL_INLINE static inline
#endif

#if defined(__GNUC__) || defined(__clang__) || defined(__ARMCC_VERSION)
#define AOT_MODEL_ALIGNED(n) __attribute__((aligned(n)))
#elif defined(_MSC_VER)
#define AOT_MODEL_ALIGNED(n) __declspec(align(n))
#else
#define AOT_MODEL_ALIGNED(n)
#endif

/* Linker section of a pool that the user gave one; -DAOT_MODEL_SECTION(name)=... brings another compiler's spelling. */
#if !defined(AOT_MODEL_SECTION) && (defined(__GNUC__) || defined(__clang__) || defined(__ARMCC_VERSION))
#define AOT_MODEL_SECTION(name) __attribute__((section(name)))
#endif

/* An array of characters that a string fills to the last byte, without a NUL behind it. */
#if defined(__clang__) && defined(__has_attribute)
#if __has_attribute(nonstring)
#define AOT_MODEL_BYTES __attribute__((nonstring))
#endif
#elif defined(__GNUC__) && __GNUC__ >= 15
#define AOT_MODEL_BYTES __attribute__((nonstring))
#endif
#ifndef AOT_MODEL_BYTES
#define AOT_MODEL_BYTES
#endif

/* Whether the most significant byte of a number is the first; -DAOT_MODEL_BIG_ENDIAN=0 or 1 tells it of another compiler. */
#ifndef AOT_MODEL_BIG_ENDIAN
#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define AOT_MODEL_BIG_ENDIAN 1
#else
#define AOT_MODEL_BIG_ENDIAN 0
#endif
#elif defined(__LITTLE_ENDIAN__) /* IAR: 0 or 1 */
#if __LITTLE_ENDIAN__ == 0
#define AOT_MODEL_BIG_ENDIAN 1
#else
#define AOT_MODEL_BIG_ENDIAN 0
#endif
#elif defined(__BIG_ENDIAN__) || defined(__ARM_BIG_ENDIAN) || defined(__big_endian__)
#define AOT_MODEL_BIG_ENDIAN 1
#elif defined(_MSC_VER) || defined(__little_endian__)
#define AOT_MODEL_BIG_ENDIAN 0
#endif
#endif

#endif
