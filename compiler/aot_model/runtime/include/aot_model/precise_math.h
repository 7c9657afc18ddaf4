/* Floats as C and IEEE 754 have them, in a file that is compiled with -ffast-math, -Ofast or parts of them. Part of aot-model.
 *
 * Generated C rounds where the model rounds and tells numbers from NaN and infinity. Compilers that may take a quotient for
 * a product, or think that there is no NaN, give other integers and other answers without a word. This header is the first
 * that a generated file reads and takes these permissions back for that file; where a compiler cannot do that, it says
 * so. docs/compilers.md, fast math. */
#ifndef AOT_MODEL_PRECISE_MATH_H
#define AOT_MODEL_PRECISE_MATH_H

#include <float.h>

#ifdef FLT_RADIX
#if FLT_RADIX != 2 || FLT_MANT_DIG != 24 || FLT_MAX_EXP != 128
#error "generated C needs a float of 32 bits as in IEEE 754"
#endif
#endif

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0
#define AOT_MODEL_FINITE_MATH 1
#elif defined(__FAST_MATH__)
#define AOT_MODEL_FINITE_MATH 1
#else
#define AOT_MODEL_FINITE_MATH 0
#endif

#if defined(__clang__)
#if AOT_MODEL_FINITE_MATH /* its pragmas do not reach conditional expressions */
#error "generated C needs NaN and infinity: compile this file with -fno-fast-math behind the other options"
#elif !defined(__apple_build_version__) && __clang_major__ >= 14
#pragma clang fp reassociate(off)
#if __clang_major__ >= 18
#pragma clang fp reciprocal(off)
#endif
#endif
#elif defined(__GNUC__)
#if AOT_MODEL_FINITE_MATH || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) \
    || defined(__NO_SIGNED_ZEROS__)
#pragma GCC optimize("no-fast-math,no-unsafe-math-optimizations,no-finite-math-only,no-associative-math," \
    "no-reciprocal-math,signed-zeros,trapping-math")
#endif
#elif AOT_MODEL_FINITE_MATH
#error "generated C needs NaN and infinity: compile this file without the options for fast mathematics"
#endif

/* Clang 22 stores a byte as four in short loops of bytes (docs/compilers.md); 19 does not, 20 and 21 were not tried. */
#if defined(__clang__) && !defined(__apple_build_version__) && defined(__AVX512BW__)
#if __clang_major__ >= 20
#error "with AVX-512BW this compiler may store a byte as four: compile this file with -mno-avx512bw"
#endif
#endif

/* Clang 19 reads and writes strided elements of vectors that it makes itself at four times the distance (docs/compilers.md). */
#if defined(__clang__) && !defined(__apple_build_version__) && defined(__ARM_FEATURE_MVE) && !defined(AOT_MODEL_UNVECTORIZED)
#if __clang_major__ == 19
#error "this compiler's own vectors are wrong with Helium: compile this file with -fno-vectorize -DAOT_MODEL_UNVECTORIZED, or with another clang"
#endif
#endif

/* The first scheduling of GCC 12 uses up Helium's registers; what is put on the stack then may be lost (docs/compilers.md). */
#if defined(__GNUC__) && !defined(__clang__) && defined(__ARM_FEATURE_MVE)
#pragma GCC optimize("no-schedule-insns")
#endif

#endif
