/*
 * choice.c - see choice.h.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "pg/choice.h"

/* The class that the argument named last. */
typedef struct Choice
{
	FmgrInfo output; /* of the argument's type */
	bool is_number;
	bool is_boolean;
	char *text;
	int index;
} Choice;

void
ag_choice_need_classes(const AgCall *call, const char *hint)
{
	if (call->model->n_classes == 0)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("model \"%s\" predicts a number, not a class", call->name),
						errhint("%s", hint)));
}

/* The first of them, for a hint. */
static const char *
class_list(const AgOpenModel *model)
{
	StringInfoData list;
	int n = Min(model->n_classes, 20);

	initStringInfo(&list);
	for (int i = 0; i < n; i++)
		appendStringInfo(&list, "%s\"%s\"", i == 0 ? "" : ", ",
						 ag_model_text(model, model->classes[i].name, model->classes[i].n_bytes));
	if (n < model->n_classes)
		appendStringInfoString(&list, ", ...");
	return list.data;
}

static void
unknown_class(const AgOpenModel *model, const char *name, const char *text)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("model \"%s\" has no class \"%s\"", name, text),
					errhint("Its classes are %s.", class_list(model))));
}

int
ag_choice_find(const AgOpenModel *model, const char *name, const char *text, bool is_number)
{
	for (int i = 0; i < model->n_classes; i++)
		if (strcmp(text, ag_model_text(model, model->classes[i].name, model->classes[i].n_bytes)) ==
			0)
			return i;
	if (is_number)
	{
		char *end;
		double number = strtod(text, &end);

		for (int i = 0; i < model->n_classes && end != text && *end == '\0'; i++)
			if (model->classes[i].number == number && !ag_model_is_rounded(model, number))
				return i;
	}
	unknown_class(model, name, text);
	return -1;
}

static Choice *
choice_of(FunctionCallInfo fcinfo, int argument, AgCall *call)
{
	Choice *choice = call->extra;

	if (choice == NULL)
	{
		Oid type = get_fn_expr_argtype(fcinfo->flinfo, argument);
		Oid output;
		bool is_varlena, is_preferred;
		char category;

		if (!OidIsValid(type))
			ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_DATATYPE),
							errmsg("could not determine the type of the class")));
		choice = MemoryContextAllocZero(call->context, sizeof(Choice));
		getTypeOutputInfo(type, &output, &is_varlena);
		fmgr_info_cxt(output, &choice->output, call->context);
		get_type_category_preferred(getBaseType(type), &category, &is_preferred);
		choice->is_number = category == TYPCATEGORY_NUMERIC;
		choice->is_boolean = getBaseType(type) == BOOLOID;
		call->extra = choice;
	}
	return choice;
}

int
ag_choice_argument(FunctionCallInfo fcinfo, int argument, AgCall *call)
{
	Choice *choice = choice_of(fcinfo, argument, call);
	const char *text;

	if (choice->is_boolean) /* prints as t and f, but the classes are called true and false */
		text = PG_GETARG_BOOL(argument) ? "true" : "false";
	else
		text = OutputFunctionCall(&choice->output, PG_GETARG_DATUM(argument));
	if (choice->text == NULL || strcmp(choice->text, text) != 0)
	{
		choice->index = ag_choice_find(call->model, call->name, text, choice->is_number);
		if (choice->text != NULL)
			pfree(choice->text);
		choice->text = MemoryContextStrdup(call->context, text);
	}
	return choice->index;
}

int
ag_choice_output(FunctionCallInfo fcinfo, int argument, const char *name, const AgOpenModel *model)
{
	if (!PG_ARGISNULL(argument))
	{
		if (model->n_classes == 0)
			ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
							errmsg("model \"%s\" predicts a number, not a class", name),
							errhint("Leave the class out.")));
		return ag_choice_find(model, name, text_to_cstring(PG_GETARG_TEXT_PP(argument)), true);
	}
	if (model->n_classes > 2)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("model \"%s\" has %d classes: one must be named", name, model->n_classes),
				 errhint("Its classes are %s.", class_list(model))));
	return model->n_classes == 2 ? 1 : model->middle;
}
