/*
 * explain.c - why a predictor answers what it answers for a row: each column's share, by Shapley values against the rows
 * that it remembers of its training data.
 */
#include "engine/model/shapley.h"
#include "engine/predictor_private.h"

typedef struct AgExplaining
{
	AgShapleyGame game;
	int *player_of; /* [n_features] */
	/* where every model's contributions can be had without enumeration */
	bool is_direct;
	int8_t *sides;   /* [n_inputs] */
	void **prepared; /* [n_leaves] */
	/* elsewhere */
	double *outputs; /* [AG_SHAPLEY_ROWS][n_outputs] */
	AgShapleyWork *work;
} AgExplaining;

void
ag_predictor_explain_free(AgPredictor *predictor)
{
	AgExplaining *explaining = predictor->explaining;
	AgContext own = {.mem = predictor->mem};

	if (explaining == NULL)
		return;
	for (int i = 0; i < predictor->n_leaves && explaining->prepared != NULL; i++)
		ag_mem_free(own.mem, explaining->prepared[i]);
	ag_shapley_work_free(&own, explaining->work);
	ag_mem_free(own.mem, explaining->player_of);
	ag_mem_free(own.mem, explaining->sides);
	ag_mem_free(own.mem, explaining->prepared);
	ag_mem_free(own.mem, explaining->outputs);
	ag_mem_free(own.mem, explaining);
	predictor->explaining = NULL;
}

static AgStatus
prepare_direct(const AgContext *own, const AgPredictor *predictor, AgExplaining *explaining)
{
	AG_TRY(ag_get(own, (size_t) explaining->game.n_players, 1, &explaining->sides));
	AG_TRY(ag_get_zeroed(own, (size_t) predictor->n_leaves, sizeof(void *), &explaining->prepared));
	for (int i = 0; i < predictor->n_leaves; i++)
		AG_TRY(ag_shapley_direct_prepare(own, &predictor->leaves[i].model, &explaining->game,
										 &explaining->prepared[i]));
	return AG_OK;
}

static AgStatus
prepare(const AgContext *ctx, AgPredictor *predictor)
{
	const AgPipeline *pipeline = predictor->pipeline;
	const AgProfile *profile = &pipeline->profile;
	AgContext own = *ctx; /* what stays with the predictor comes from its memory */
	AgExplaining *explaining;
	AgStatus status;

	if (predictor->explaining != NULL)
		return AG_OK;
	own.mem = predictor->mem;
	AG_TRY(ag_get_zeroed(&own, 1, sizeof *explaining, &predictor->explaining));
	explaining = predictor->explaining;
	AG_GO(ag_get(&own, (size_t) pipeline->n_features, sizeof(int), &explaining->player_of));
	for (int f = 0; f < pipeline->n_features; f++)
		explaining->player_of[f] = pipeline->features[f].input;
	explaining->game = (AgShapleyGame){pipeline->n_features, pipeline->n_inputs,
									   explaining->player_of, (int) profile->n_rows, profile->rows};
	AG_GO(ag_get(&own, (size_t) predictor->n_outputs * AG_SHAPLEY_ROWS, sizeof(double),
				 &explaining->outputs));
	explaining->is_direct = ag_predictor_is_flat(predictor);
	for (int i = 0; i < predictor->n_leaves; i++)
		explaining->is_direct &= ag_shapley_is_direct(&predictor->leaves[i].model);
	if (explaining->is_direct)
		AG_GO(prepare_direct(&own, predictor, explaining));
	else
		AG_GO(ag_shapley_work_create(&own, pipeline->n_features, pipeline->n_inputs,
									 &explaining->work));
done:
	if (status != AG_OK)
		ag_predictor_explain_free(predictor);
	return status;
}

/* One output of the predictor, as a function of rows. */
typedef struct Function
{
	const AgContext *ctx;
	AgPredictor *predictor;
	int output;
} Function;

static AgStatus
run(void *arg, int64_t n, const double *rows, double *out)
{
	const Function *function = arg;
	const double *outputs = function->predictor->explaining->outputs;
	int n_outputs = function->predictor->n_outputs;

	AG_TRY(ag_predictor_run_rows(function->ctx, function->predictor, n, rows,
								 function->predictor->explaining->outputs));
	for (int64_t i = 0; i < n; i++)
		out[i] = outputs[i * n_outputs + function->output];
	return AG_OK;
}

AgStatus
ag_predictor_explain(const AgContext *ctx, AgPredictor *predictor, const double *features,
					 int output, int step, AgExplanation *explanation)
{
	Function function = {ctx, predictor, output};
	double outputs[AG_PROFILE_ROWS];
	AgExplaining *explaining;
	const AgShapleyGame *game;

	AG_TRY(prepare(ctx, predictor));
	explaining = predictor->explaining;
	game = &explaining->game;
	if (step == 0)
	{
		explanation->n_steps = explaining->is_direct ? predictor->n_leaves : game->n_rows;
		AG_TRY(run(&function, game->n_rows, game->rows, outputs));
		explanation->base = 0.0;
		for (int k = 0; k < game->n_rows; k++)
			explanation->base += outputs[k] / game->n_rows;
	}
	if (explaining->is_direct)
		ag_shapley_direct(&predictor->leaves[step].model, game, explaining->prepared[step],
						  features, output, predictor->leaves[step].weight, explaining->sides,
						  explanation->contributions);
	else
		AG_TRY(ag_shapley_any(ctx, game, step, features, run, &function, explaining->work,
							  explanation->contributions));
	if (step == explanation->n_steps - 1 && !explaining->is_direct)
		for (int i = 0; i < game->n_players; i++)
			explanation->contributions[i] /= game->n_rows;
	return AG_OK;
}
