/*
 * errors.c - see errors.h.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "pg/compat.h"
#include "pg/errors.h"

int
ag_error_sqlstate(AgStatus status)
{
	switch (status)
	{
		case AG_OK:
			return ERRCODE_SUCCESSFUL_COMPLETION;
		case AG_ERR_MEMORY:
			return ERRCODE_OUT_OF_MEMORY;
		case AG_ERR_CANCELLED:
		case AG_ERR_TIME:
			return ERRCODE_QUERY_CANCELED;
		case AG_ERR_OPTION:
			return ERRCODE_INVALID_PARAMETER_VALUE;
		case AG_ERR_UNSUPPORTED:
			return ERRCODE_FEATURE_NOT_SUPPORTED;
		case AG_ERR_DATA:
			return ERRCODE_DATA_EXCEPTION;
		case AG_ERR_VALUE:
			return ERRCODE_INVALID_TEXT_REPRESENTATION;
		case AG_ERR_CORRUPT:
			return ERRCODE_DATA_CORRUPTED;
		case AG_ERR_PROTOCOL:
			return ERRCODE_PROTOCOL_VIOLATION;
		case AG_ERR_SYSTEM:
			return ERRCODE_SYSTEM_ERROR;
		case AG_ERR_RESOURCES:
			return ERRCODE_INSUFFICIENT_RESOURCES;
		case AG_ERR_INTERNAL:
			break;
	}
	return ERRCODE_INTERNAL_ERROR;
}

void
ag_error_raise(const AgError *err)
{
	const char *message = err->message[0] != '\0' ? err->message : "unknown error";

	ereport(
		ERROR,
		(errcode(ag_error_sqlstate(err->status)),
		 errmsg_internal("%s", ag_message_from_utf8(message)),
		 err->detail[0] != '\0' ? errdetail_internal("%s", ag_message_from_utf8(err->detail)) : 0,
		 err->hint[0] != '\0' ? errhint("%s", ag_message_from_utf8(err->hint)) : 0));
	pg_unreachable();
}

char *
ag_message_from_utf8(const char *text)
{
	int encoding = GetDatabaseEncoding();
	int n = (int) strlen(text);
	char *out;

	if (encoding == PG_SQL_ASCII)
		return pstrdup(text);
	if (pg_verify_mbstr(PG_UTF8, text, n, true))
	{
		if (encoding == PG_UTF8)
			return pstrdup(text);
		out = palloc0((Size) n * MAX_CONVERSION_GROWTH + 1);
		if (ag_try_convert(text, n, PG_UTF8, encoding, out, n * MAX_CONVERSION_GROWTH + 1))
			return out;
		pfree(out);
	}
	out = pstrdup(text);
	for (int i = 0; i < n; i++)
		if (IS_HIGHBIT_SET(out[i]))
			out[i] = '?';
	return out;
}

char *
ag_text_from_utf8(const char *text)
{
	if (GetDatabaseEncoding() == PG_SQL_ASCII)
		return (char *) text;
	return pg_any_to_server(text, (int) strlen(text), PG_UTF8);
}

char *
ag_text_to_utf8(const char *text)
{
	if (GetDatabaseEncoding() == PG_SQL_ASCII)
		return (char *) text;
	return pg_server_to_any(text, (int) strlen(text), PG_UTF8);
}
