/*
 * linear_maths.h - exponential and logarithm of a linear model's loss, as the vector loops have them, for one number at a time on a
 * device: the bits are those of AgVectorOps.exps and logs (base/vector.h), which test/unit/vector.c holds them to.
 */
#ifndef AG_LINEAR_MATHS_H
#define AG_LINEAR_MATHS_H

#include "engine/base/maths.h"

/* e^x for x <= 0; 0 below -708. */
AG_MATHS_FN double
ag_linear_exp(double x)
{
	double shifted = x * 1.4426950408889634 + 0x1.8p52;
	double k = shifted - 0x1.8p52;
	double r = x - k * 6.93147180369123816490e-01, p;
	uint64_t bits, power;

	if (!(x >= -708.0))
		return 0.0;
	r = r - k * 1.90821492927058770002e-10;
	AG_EXP_SERIES(p, r);
	memcpy(&bits, &p, sizeof bits);
	memcpy(&power, &shifted, sizeof power);
	bits += power << 52;
	memcpy(&p, &bits, sizeof p);
	return p;
}

/* ln x for normal x > 0. */
AG_MATHS_FN double
ag_linear_ln(double x)
{
	uint64_t bits, high, low;
	double e, y, m, s, z, p;

	memcpy(&bits, &x, sizeof bits);
	high = bits >> 52 | UINT64_C(0x4330000000000000);
	low = (bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000);
	memcpy(&e, &high, sizeof e);
	memcpy(&y, &low, sizeof y);
	e -= 0x1.00000000003ffp52;
	m = y > 1.4142135623730951 ? y * 0.5 : y;
	e += y > 1.4142135623730951 ? 1.0 : 0.0;
	s = (m - 1.0) / (m + 1.0);
	z = s * s;
	AG_LN_SERIES(p, z);
	p = s * 2.0 + s * 2.0 * z * p;
	return e * 6.93147180369123816490e-01 + (p + e * 1.90821492927058770002e-10);
}

#endif
