/*
 * convert_numeric.c - numeric to double, fast where that is exact.
 *
 * The server's own way prints the number and reads it back, which costs more than all the rest of a row. The stored form (the
 * same since 9.1, as it lies in data files) is a sign, a weight and digits to the base 10000. When those digits make an integer m
 * below 2^53 and the power of ten beside it is at most 22, m × 10^e or m / 10^-e is one rounding of exact operands, and so the
 * correctly rounded value (Clinger, "How to read floating point numbers accurately", PLDI 1990). The rest goes the server's way.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "pg/compat.h"
#include "pg/convert_private.h"

#define BASE 10000
#define DIGIT_POWER 4 /* decimal digits of one */
#define FORM_BITS 0xC000
#define FORM_NEGATIVE 0x4000
#define FORM_SHORT 0x8000
#define FORM_SPECIAL 0xC000
#define SHORT_NEGATIVE 0x2000
#define SHORT_WEIGHT_NEGATIVE 0x0040
#define SHORT_WEIGHT_BITS 0x003F
#define MAX_EXACT (INT64CONST(1) << 53)

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
								1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
								1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool
exact_double(const struct varlena *numeric, double *value)
{
	const char *bytes = VARDATA_ANY(numeric);
	int n_bytes = VARSIZE_ANY_EXHDR(numeric);
	int head = sizeof(uint16);
	int weight, n_digits, exponent;
	bool negative;
	int64 m = 0;
	uint16 form;

	if (n_bytes < head)
		return false;
	memcpy(&form, bytes, sizeof form);
	if ((form & FORM_BITS) == FORM_SPECIAL)
		return false;
	if ((form & FORM_BITS) == FORM_SHORT)
	{
		negative = (form & SHORT_NEGATIVE) != 0;
		weight = form & SHORT_WEIGHT_BITS;
		if ((form & SHORT_WEIGHT_NEGATIVE) != 0)
			weight |= ~SHORT_WEIGHT_BITS;
	}
	else
	{
		int16 stored;

		if (n_bytes < head + (int) sizeof stored)
			return false;
		memcpy(&stored, bytes + head, sizeof stored);
		head += sizeof stored;
		negative = (form & FORM_BITS) == FORM_NEGATIVE;
		weight = stored;
	}
	n_digits = (n_bytes - head) / (int) sizeof(int16);
	for (int i = 0; i < n_digits; i++)
	{
		int16 digit;

		memcpy(&digit, bytes + head + i * (int) sizeof digit, sizeof digit);
		if (m > (MAX_EXACT - digit) /
					BASE) /* looked at before: the product can be too large for an int64 */
			return false;
		m = m * BASE + digit;
	}
	exponent = DIGIT_POWER * (weight - n_digits + 1);
	if (m == 0)
		exponent = 0;
	if (exponent < -22 || exponent > 22)
		return false;
	*value = exponent < 0 ? (double) m / powers[-exponent] : (double) m * powers[exponent];
	if (negative)
		*value = -*value;
	return true;
}

double
ag_numeric_to_double(Datum value)
{
	struct varlena *numeric = PG_DETOAST_DATUM_PACKED(value);
	double result;

	if (exact_double(numeric, &result))
		return result;
	return DatumGetFloat8(
		DirectFunctionCall1(numeric_float8_no_overflow, PointerGetDatum(numeric)));
}
