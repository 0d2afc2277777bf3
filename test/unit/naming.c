/* naming.c - "ag_args": names, order, and what models are for. */
#include "unit/option_lines.h"

/* The names in the order in which they are fitted, blank-separated. */
static void
order_is(AgMem *mem, const char *lines, const char *names)
{
	AgFitOptions *o = accepted(mem, lines);
	char text[512] = "";

	for (int i = 0; i < o->n_models; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? " " : "",
				 o->models[i].name);
	AG_CHECK_STR(text, names);
	ag_options_free(o);
}

#define TWO                                                                                        \
	"/hyperparameters { 2\n/hyperparameters/CAT { 0\n/hyperparameters/GBM [ 2\n"                   \
	"/hyperparameters/GBM/0 { 0\n/hyperparameters/GBM/1 { 1\n/hyperparameters/GBM/1/ag_args { 1\n"
#define OWN "/hyperparameters/GBM/1/ag_args/"
#define ONE "/hyperparameters { 1\n/hyperparameters/GBM { 0\n/ag_args { 1\n/ag_args/"

static void
names(AgMem *mem)
{
	order_is(mem, TWO OWN "name_suffix s _XT", "GBM CAT GBM_XT");
	order_is(mem, TWO OWN "name_suffix s _2", "GBM CAT GBM_2");
	order_is(mem, TWO OWN "name_prefix s my.", "GBM CAT my.GBM");
	order_is(mem, TWO OWN "name_main s LightGBM", "GBM CAT LightGBM");
	order_is(mem, TWO OWN "name s b-1", "GBM CAT b-1");
	order_is(mem, TWO OWN "name s CAT", "GBM CAT CAT_2");
	order_is(mem, TWO OWN "name_suffix n", "GBM CAT GBM_2");
	/* of all models, and one's own */
	order_is(mem, TWO OWN "name_suffix s _XT\n/ag_args { 1\n/ag_args/name_suffix s _a",
			 "GBM_a CAT_a GBM_XT");
	order_is(mem, TWO OWN "priority 0 1\n/ag_args { 1\n/ag_args/name s m", "m_2 m m_3");
	order_is(mem, "/hyperparameters s toy\n/ag_args { 1\n/ag_args/name_prefix s t_",
			 "t_GBM t_LR t_NN_TORCH t_XGB t_CAT");
	order_is(mem,
			 "/hyperparameters { 1\n/hyperparameters/LR { 2\n/hyperparameters/LR/ag_args { 0\n"
			 "/hyperparameters/LR/C 0 2",
			 "LR");
}

static void
priorities(AgMem *mem)
{
	order_is(mem, TWO OWN "priority 0 91", "GBM_2 GBM CAT");
	order_is(mem, TWO OWN "priority 0 90", "GBM GBM_2 CAT"); /* the first of a family has it */
	order_is(mem, TWO OWN "priority 0 81", "GBM GBM_2 CAT");
	order_is(mem, TWO OWN "priority 0 0", "GBM CAT GBM_2");
	order_is(mem, TWO OWN "priority 0 -1.5", "GBM CAT GBM_2");
	order_is(mem, TWO OWN "priority 0 1\n/ag_args { 1\n/ag_args/priority 0 -3", "GBM_2 GBM CAT");
	/* a set stands as it does */
	order_is(mem, "/hyperparameters s toy\n/ag_args { 1\n/ag_args/priority 0 7",
			 "GBM LR NN_TORCH XGB CAT");
}

static void
purposes(AgMem *mem)
{
	AgFitOptions *o = accepted(mem, TWO OWN "valid_stacker b false\n/ag_args { 2\n"
											"/ag_args/valid_base b false\n"
											"/ag_args/problem_types [ 2\n"
											"/ag_args/problem_types/0 s binary\n"
											"/ag_args/problem_types/1 s softclass");

	AG_REQUIRE(o->n_models == 3);
	AG_CHECK(!o->models[0].never_stacks && o->models[2].never_stacks);
	AG_CHECK(o->models[0].never_base && o->models[2].never_base);
	AG_CHECK_EQ(o->models[0].problems, 1u << AG_PROBLEM_BINARY);
	ag_options_free(o);
	o = accepted(mem, TWO OWN "valid_stacker b true");
	AG_CHECK(!o->models[2].never_stacks && o->models[2].problems == 0);
	ag_options_free(o);
}

static void
refusals(AgMem *mem)
{
	static const char hint[] = "Names have up to 40 bytes, and none of what ensembles, bags and "
							   "models fitted again are known by: \"WeightedEnsemble\", "
							   "\"_BAG_L\", \"_FULL\".";

	refused(mem, ONE "name s GBM_FULL", AG_ERR_OPTION, "\"GBM_FULL\" can't be a model's name",
			hint);
	refused(mem, ONE "name_suffix s _BAG_L1", AG_ERR_OPTION,
			"\"GBM_BAG_L1\" can't be a model's name", hint);
	refused(mem, ONE "name_main s WeightedEnsemble_L2", AG_ERR_OPTION,
			"\"WeightedEnsemble_L2\" can't be a model's name", hint);
	refused(mem, ONE "name s best", AG_ERR_OPTION, "\"best\" can't be a model's name", hint);
	refused(mem, ONE "name_suffix s 1234567890123456789012345678901234567890", AG_ERR_OPTION,
			"\"GBM1234567890123456789012345678901234567890\" is too long for a model's name", hint);
	refused(mem, ONE "name s a/b", AG_ERR_OPTION,
			"option \"ag_args.name\" takes a text of up to 40 letters, digits, \"_\", \"-\" and "
			"\".\", not \"a/b\"",
			"");
	refused(mem, ONE "name s ", AG_ERR_OPTION,
			"option \"ag_args.name\" takes a text of up to 40 letters, digits, \"_\", \"-\" and "
			"\".\", not \"\"",
			"");
	refused(mem, ONE "name 0 3", AG_ERR_OPTION,
			"option \"ag_args.name\" takes a text of up to 40 letters, digits, \"_\", \"-\" and "
			"\".\", not 3",
			"");
	refused(mem, ONE "priority s high", AG_ERR_OPTION,
			"option \"ag_args.priority\" takes a number: the higher, the earlier, not "
			"\"high\"",
			"");
	refused(mem, ONE "valid_base 0 1", AG_ERR_OPTION,
			"option \"ag_args.valid_base\" takes true or false, not 1", "");
	refused(mem, ONE "problem_types [ 1\n/ag_args/problem_types/0 s ranking", AG_ERR_OPTION,
			"option \"ag_args.problem_types.0\" takes an array of \"binary\", \"multiclass\", "
			"\"regression\" and \"quantile\", not \"ranking\"",
			"");
	refused(mem, ONE "name_bag_suffix s _B", AG_ERR_UNSUPPORTED,
			"argument of \"ag_args\" \"name_bag_suffix\" is not supported yet", "");
	refused(mem, ONE "model_type s x", AG_ERR_UNSUPPORTED,
			"argument of \"ag_args\" \"model_type\" is not supported yet", "");
	refused(mem, ONE "prority n", AG_ERR_OPTION, "unrecognized argument \"ag_args.prority\"",
			"Did you mean \"priority\"?");
	refused(mem, "/ag_args s x", AG_ERR_OPTION,
			"option \"ag_args\" takes an object such as {\"name_suffix\": \"_slow\"}, not "
			"\"x\"",
			"");
	/* what asks for nothing passes */
	order_is(mem, ONE "name_bag_suffix s BAG", "GBM");
	order_is(mem, ONE "disable_in_hpo b false", "GBM");
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	names(&mem);
	priorities(&mem);
	purposes(&mem);
	refusals(&mem);
	AG_CHECK_EQ(mem.used_bytes, 0);
	return ag_unit_done("naming");
}
