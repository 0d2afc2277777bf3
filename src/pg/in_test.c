/*
 * in_test.c - ag_in_test: a split into training and test rows that depends on nothing but each row's key.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

#include "engine/base/hash.h"
#include "pg/compat.h"

#define SEED 0x74657374 /* part of the rule: another one would be another split */

/*
 * The key's hash as a number in [0, 1) is below the fraction: so a larger test set holds every smaller one. A key may be given as
 * number, uuid or as the text of it.
 */
static Datum
in_test(const char *key, size_t n_bytes, double fraction)
{
	if (!(fraction >= 0.0 && fraction <= 1.0))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("fraction must be between 0 and 1")));
	PG_RETURN_BOOL((double) (ag_hash64(key, n_bytes, SEED) >> 11) * 0x1.0p-53 < fraction);
}

PG_FUNCTION_INFO_V1(ag_sql_in_test_text);
PG_FUNCTION_INFO_V1(ag_sql_in_test_bigint);
PG_FUNCTION_INFO_V1(ag_sql_in_test_uuid);

Datum
ag_sql_in_test_text(PG_FUNCTION_ARGS)
{
	text *key = PG_GETARG_TEXT_PP(0);

	return in_test(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), PG_GETARG_FLOAT8(1));
}

Datum
ag_sql_in_test_bigint(PG_FUNCTION_ARGS)
{
	char key[MAXINT8LEN + 1];

	pg_lltoa(PG_GETARG_INT64(0), key);
	return in_test(key, strlen(key), PG_GETARG_FLOAT8(1));
}

Datum
ag_sql_in_test_uuid(PG_FUNCTION_ARGS)
{
	char *key = DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(0)));

	return in_test(key, strlen(key), PG_GETARG_FLOAT8(1));
}
