/*
 * hash.c - hashes of bytes.
 *
 * One step takes 64 bits into a state of 128: the low half, with the input added by exclusive or,
 * is multiplied by an odd constant to 128 bits. The product's low word is a bijection of the input, so two
 * states that differ in one input only never meet in that step; its high word carries the input's low bits
 * upwards. The halves then cross. Four steps with constants at the end spread what came last over all bits.
 */
#include "engine/base/hash.h"

#include <string.h>

/* Odd, with about as many ones as zeros in every byte: the fractional digits of sqrt 2, sqrt 3, sqrt 5, sqrt 7. */
#define K0 UINT64_C(0x6a09e667f3bcc909)
#define K1 UINT64_C(0xbb67ae8584caa73b)
#define K2 UINT64_C(0x3c6ef372fe94f82b)
#define K3 UINT64_C(0xa54ff53a5f1d36f1)

static inline AgHash128
step(AgHash128 hash, uint64_t value)
{
	unsigned __int128 product = (unsigned __int128) (hash.lo ^ value) * K1;
	AgHash128 next;

	next.lo = (uint64_t) product ^ (hash.hi << 23 | hash.hi >> 41);
	next.hi = (hash.hi + (uint64_t) (product >> 64)) * K2 + hash.lo;
	return next;
}

AgHash128
ag_hash128_fold(AgHash128 hash, uint64_t value)
{
	return step(step(hash, value), K3);
}

static AgHash128
absorb(const uint8_t *at, size_t n, uint64_t seed)
{
	AgHash128 hash = {seed ^ K0, (seed + n) * K2 ^ K3};
	uint64_t word;

	for (; n >= 8; n -= 8, at += 8)
	{
		memcpy(&word, at, 8);
		hash = step(hash, word);
	}
	if (n > 0)
	{
		word = 0;
		memcpy(&word, at, n);
		hash = step(hash, word);
	}
	hash = step(hash, K0);
	hash = step(hash, K3);
	hash = step(hash, K2);
	return step(hash, K0);
}

AgHash128
ag_hash128(const void *bytes, size_t n, uint64_t seed)
{
	return absorb(bytes, n, seed);
}

uint64_t
ag_hash64(const void *bytes, size_t n, uint64_t seed)
{
	AgHash128 hash = absorb(bytes, n, seed);

	return hash.lo ^ hash.hi;
}
