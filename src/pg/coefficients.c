/*
 * coefficients.c - see coefficients.h.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/fmgrprotos.h"

#include "engine/engine.h"
#include "pg/cache.h"
#include "pg/coefficients.h"
#include "pg/errors.h"

#define FAMILY "LR"
#define MOST_TERMS 1000
#define MOST_BYTES (INT64CONST(256) << 20)

bool
ag_coefficients_has(const AgMemberRow *member)
{
	return strcmp(member->family, FAMILY) == 0 && member->can_infer;
}

static AgMemberRef *
refs_of(const AgMemberRow *members, int n)
{
	AgMemberRef *refs = palloc0(sizeof(AgMemberRef) * n);

	for (int i = 0; i < n; i++)
	{
		refs[i].ordinal = members[i].ordinal;
		refs[i].name = ag_text_to_utf8(members[i].name);
	}
	return refs;
}

/* In the server's encoding. */
static char *
json_of(const AgOpenModel *model, const AgMemberRef *refs, int n)
{
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};
	AgWriter out;
	AgStatus status;
	char *text = NULL;

	ag_mem_init(&mem, MOST_BYTES);
	ag_error_init(&error);
	ag_writer_init(&out, &mem);
	status = ag_predictor_coefficients(&ctx, model->predictor, refs, n, MOST_TERMS, &out);
	if (status == AG_OK)
		text = palloc_extended(out.size + 1, MCXT_ALLOC_NO_OOM);
	if (text != NULL)
	{
		memcpy(text, out.data, out.size);
		text[out.size] = '\0';
	}
	ag_writer_free(&out);
	ag_error_check(status, &error);
	if (text == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	return ag_model_text(model, text, strlen(text));
}

Jsonb *
ag_coefficients(const pg_uuid_t *id, const AgMemberRow *members, int n, const AgMemberRow *member)
{
	const AgOpenModel *model = ag_cache_get(id, member->name, CurrentMemoryContext);
	char *json = json_of(model, refs_of(members, n), n);

	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json)));
}
