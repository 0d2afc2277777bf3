/*
 * choice.h - a class that the user names by a value: of a function's argument, or as a text.
 */
#ifndef AG_CHOICE_H
#define AG_CHOICE_H

#include "postgres.h"

#include "fmgr.h"

#include "pg/call.h"

/* ERROR 42809, with that hint, where the model predicts numbers. */
extern void ag_choice_need_classes(const AgCall *call, const char *hint);

/*
 * The class that a text names: its name, or for classes that are numbers one of the same value (when is_number). 22023 that
 * lists the classes.
 */
extern int ag_choice_find(const AgOpenModel *model, const char *name, const char *text,
						  bool is_number);

/* The class that an argument of type anycompatible names; keeps what it found in call->extra. */
extern int ag_choice_argument(FunctionCallInfo fcinfo, int argument, AgCall *call);

/*
 * The output that a text argument means: its class, and where it is NULL the number or the positive class. ERROR where a class must be
 * named, or there is none to name.
 */
extern int ag_choice_output(FunctionCallInfo fcinfo, int argument, const char *name,
							const AgOpenModel *model);

#endif
