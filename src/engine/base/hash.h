/*
 * hash.h - hashes of bytes: for dictionaries, row identity and checksums.
 *
 * Our own fixed functions, part of the formats: a released one never changes.
 * Not cryptographic.
 */
#ifndef AG_HASH_H
#define AG_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct AgHash128
{
	uint64_t lo, hi;
} AgHash128;

/* 128 well-mixed bits of n bytes under a seed. The low half alone serves hash tables. */
AgHash128 ag_hash128(const void *bytes, size_t n, uint64_t seed);
uint64_t ag_hash64(const void *bytes, size_t n, uint64_t seed);

/* Folds a 64-bit value into a running 128-bit hash; order matters. */
AgHash128 ag_hash128_fold(AgHash128 hash, uint64_t value);

#endif
