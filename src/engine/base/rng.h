/*
 * rng.h - counter-based random numbers.
 *
 * A number is a pure function of a key and a counter, never of how many were
 * drawn before or by which thread: so any order of evaluation, on any device,
 * gives the same numbers. Keys are made by folding what the number is for
 * (seed, tree, node path, feature) one after the other.
 */
#ifndef AG_RNG_H
#define AG_RNG_H

#include <stdint.h>

#ifdef __CUDACC__
#define AG_RNG_FN static inline __host__ __device__
#else
#define AG_RNG_FN static inline
#endif

/* Mixes 64 bits (the finaliser of SplitMix64; Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"). */
AG_RNG_FN uint64_t
ag_mix64(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* A new key from a key and what distinguishes the use. */
AG_RNG_FN uint64_t
ag_key(uint64_t key, uint64_t part)
{
	return ag_mix64(key + UINT64_C(0x9e3779b97f4a7c15) * (part + 1));
}

/* The counter-th 64 random bits under a key. */
AG_RNG_FN uint64_t
ag_random_u64(uint64_t key, uint64_t counter)
{
	return ag_mix64(ag_mix64(counter + UINT64_C(0x9e3779b97f4a7c15)) ^ key);
}

/* Uniform in [0, 1), 53 bits. */
AG_RNG_FN double
ag_random_unit(uint64_t key, uint64_t counter)
{
	return (double) (ag_random_u64(key, counter) >> 11) * 0x1.0p-53;
}

/* Uniform in [0, n), n > 0 (multiply-shift; the bias is below n / 2^32). */
AG_RNG_FN uint32_t
ag_random_below(uint64_t key, uint64_t counter, uint32_t n)
{
	return (uint32_t) (((ag_random_u64(key, counter) >> 32) * n) >> 32);
}

#endif
