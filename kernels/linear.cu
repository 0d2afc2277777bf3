/*
 * linear.cu - what a linear model takes on the device, a pass over its rows, and the products of its columns.
 */
#include "kernels/linear.cuh"

#include <stdlib.h>

#define TILE 16
#define MOST_ROWS 64                          /* of a block */
#define MOST_SLICE_BYTES (INT64_C(256) << 20) /* scores and terms */
#define MOST_WORK INT64_C(4000000000)         /* products a launch */

/* ---- taking ---- */

static int64_t
n_values_of(const AgDeviceLinearSpec *spec)
{
	return (spec->number_stride + spec->n_columns + 2) * spec->n_padded;
}

/* Everything, in one place for the taking and the giving back: visits every array with its items and what fills it. */
template <class Visit>
static AgDeviceStatus
each_array(AgDeviceLinear *linear, const AgDeviceLinearSpec *spec, Visit visit)
{
	const double *none = nullptr;
	const AgkLinear *view = &linear->view;
	int64_t n_slice = spec->n_parts * view->slice_rows, n_values = n_values_of(spec);

	AGK_TRY(visit(&linear->numbers, spec->n_rows * spec->number_stride, spec->numbers));
	AGK_TRY(visit(&linear->row_slots, spec->n_rows * spec->n_slots, spec->row_slots));
	AGK_TRY(visit(&linear->train_rows, spec->n_train, spec->train_rows));
	AGK_TRY(visit(&linear->slot_of, (int64_t) spec->n_columns, spec->slot_of));
	AGK_TRY(visit(&linear->column_starts, (int64_t) spec->n_columns + 1, spec->column_starts));
	AGK_TRY(visit(&linear->column_places, view->n_places, spec->column_places));
	AGK_TRY(visit(&linear->weight, spec->weight != nullptr ? spec->n_train : 0, spec->weight));
	AGK_TRY(visit(&linear->target, spec->target != nullptr ? spec->n_train : 0, spec->target));
	AGK_TRY(
		visit(&linear->class_of, spec->class_of != nullptr ? spec->n_train : 0, spec->class_of));
	AGK_TRY(visit(&linear->quantiles, spec->quantiles != nullptr ? (int64_t) spec->n_outputs : 0,
				  spec->quantiles));
	AGK_TRY(visit(&linear->x, n_values, none));
	AGK_TRY(visit(&linear->scores, n_slice * spec->n_padded, none));
	AGK_TRY(visit(&linear->terms, n_slice * view->n_terms, none));
	AGK_TRY(visit(&linear->block_sums, 2 * (int64_t) spec->n_parts * view->slice_blocks, none));
	AGK_TRY(visit(&linear->parts, spec->n_parts * n_values, none));
	AGK_TRY(visit(&linear->losses, (int64_t) spec->n_parts, none));
	return visit(&linear->gradient, n_values, none);
}

/* How many blocks of each part are in work at a time. */
static void
plan_slices(const AgDevice *device, AgDeviceLinear *linear)
{
	const AgDeviceLinearSpec *spec = &linear->spec;
	AgkLinear *view = &linear->view;
	int64_t longest = (spec->n_train + spec->n_parts - 1) / spec->n_parts;
	int64_t left = device->limit_bytes - device->used_bytes -
				   spec->n_rows * (spec->number_stride + spec->n_slots) * 4 -
				   spec->n_parts * n_values_of(spec) * 8;
	int64_t rows = (left / 2 < MOST_SLICE_BYTES ? left / 2 : MOST_SLICE_BYTES) /
				   (8 * ((int64_t) spec->n_padded + view->n_terms));
	int64_t by_work =
		MOST_WORK / ((spec->number_stride + spec->n_slots + 8) * (int64_t) spec->n_padded);
	int64_t n;

	linear->most_blocks = (longest + spec->block_rows - 1) / spec->block_rows;
	n = (rows < by_work ? rows : by_work) / ((int64_t) spec->n_parts * spec->block_rows);
	n = n < linear->most_blocks ? n : linear->most_blocks;
	view->slice_blocks = n < 1 ? 1 : (int32_t) n;
	view->slice_rows = (int64_t) view->slice_blocks * spec->block_rows;
}

static void
look(AgDeviceLinear *linear)
{
	const AgDeviceLinearSpec *spec = &linear->spec;
	AgkLinear *view = &linear->view;

	view->numbers = linear->numbers.at;
	view->row_slots = linear->row_slots.at;
	view->train_rows = linear->train_rows.at;
	view->column_places = linear->column_places.at;
	view->slot_of = linear->slot_of.at;
	view->class_of = linear->class_of.at;
	view->column_starts = linear->column_starts.at;
	view->weight = linear->weight.at;
	view->target = linear->target.at;
	view->quantiles = linear->quantiles.at;
	view->x = linear->x.at;
	view->scores = linear->scores.at;
	view->terms = linear->terms.at;
	view->block_sums = linear->block_sums.at;
	view->parts = linear->parts.at;
	view->losses = linear->losses.at;
	view->gradient = linear->gradient.at;
	view->n_train = spec->n_train;
	view->stride = spec->number_stride;
	view->n_values = n_values_of(spec);
	view->n_numbers = spec->n_numbers;
	view->n_slots = spec->n_slots;
	view->n_columns = spec->n_columns;
	view->n_outputs = spec->n_outputs;
	view->n_padded = spec->n_padded;
	view->n_parts = spec->n_parts;
	view->block_rows = spec->block_rows;
	view->loss = spec->loss;
}

AgDeviceStatus
agk_linear_create(AgDevice *device, const AgDeviceLinearSpec *spec, AgDeviceLinear **created)
{
	AgDeviceLinear *linear;
	AgDeviceStatus status;

	*created = nullptr;
	AGK_TRY(agk_enter(device));
	if (spec->block_rows > MOST_ROWS || spec->n_parts > AGK_THREADS)
		return agk_refuse(device, "blocks of more than 64 rows, or more than 256 parts");
	AGK_TRY(agk_new(device, 1, &linear));
	linear->spec = *spec;
	linear->view.n_terms = spec->loss == AG_DEVICE_LINEAR_LOGISTIC    ? 2
						   : spec->loss == AG_DEVICE_LINEAR_QUANTILES ? spec->n_outputs
																	  : 1;
	linear->view.n_places = spec->column_starts[spec->n_columns];
	plan_slices(device, linear);
	status = each_array(linear, spec, [&](auto *array, int64_t n, auto from) {
		AgDeviceStatus taken = agk_get(device, n, array);

		if (taken != AG_DEVICE_OK || from == nullptr)
			return taken;
		return agk_upload(device, array->at, from, array->n_bytes);
	});
	if (status == AG_DEVICE_OK)
		status = agk_wait(device);
	look(linear);
	if (status == AG_DEVICE_OK)
		*created = linear;
	else
		agk_linear_free(device, linear);
	return status;
}

void
agk_linear_free(AgDevice *device, AgDeviceLinear *linear)
{
	if (linear == nullptr)
		return;
	(void) each_array(linear, &linear->spec, [&](auto *array, int64_t n, auto from) {
		(void) n;
		(void) from;
		agk_give(device, array);
		return AG_DEVICE_OK;
	});
	free(linear);
}

/* ---- a pass ---- */

static AgDeviceStatus
ask(AgDevice *device, int (*poll)(void *arg), void *arg)
{
	return poll != nullptr && poll(arg) != 0 ? AG_DEVICE_STOPPED : agk_enter(device);
}

AgDeviceStatus
agk_linear_sum(AgDevice *device, AgDeviceLinear *linear, const double *x, double bend,
			   double *losses, double *gradient, int (*poll)(void *arg), void *arg)
{
	AgkLinear view = linear->view;

	view.bend = bend;
	AGK_TRY(agk_enter(device));
	AGK_TRY(agk_upload(device, linear->x.at, x, linear->x.n_bytes));
	AGK_TRY(agk_clear(device, linear->parts.at, linear->parts.n_bytes));
	AGK_TRY(agk_clear(device, linear->losses.at, linear->losses.n_bytes));
	for (int64_t block = 0; block < linear->most_blocks; block += view.slice_blocks)
	{
		AGK_TRY(ask(device, poll, arg));
		agk_linear_scores(device, &view, block);
		agk_linear_add(device, &view, block);
		AGK_TRY(agk_launched(device, "summing up a linear model's losses"));
		AGK_TRY(agk_wait(device));
	}
	agk_linear_gather(device, &view);
	AGK_TRY(agk_launched(device, "summing up a linear model's gradient"));
	AGK_TRY(agk_download(device, losses, linear->losses.at, linear->losses.n_bytes));
	return agk_download(device, gradient, linear->gradient.at, linear->gradient.n_bytes);
}

/* ---- products of columns ---- */

/* Column c of a train row: numbers, columns, 1, target, and zeros. */
static __device__ inline double
cell_of(const AgkLinear &linear, const AgDeviceProducts &order, int64_t place, int64_t c)
{
	int64_t row = linear.train_rows[place];

	if (c < linear.stride)
		return (double) linear.numbers[row * linear.stride + c];
	if (c < order.n_terms)
	{
		int64_t column = c - linear.stride;
		uint32_t lit = linear.row_slots[row * linear.n_slots + linear.slot_of[column]];

		return lit == (uint32_t) column ? 1.0 : 0.0;
	}
	return c == order.n_terms ? 1.0 : c == order.n_terms + 1 ? linear.target[place] : 0.0;
}

/* A block a part and 16 x 16 products, of blocks [from, from + n_blocks) of the part; the upper half of all products. */
__global__ void
agk_linear_products_of(AgkLinear linear, AgDeviceProducts order, double *products, int64_t from,
					   int64_t n_blocks)
{
	__shared__ double plain[MOST_ROWS][TILE], weighted[MOST_ROWS][TILE];
	int64_t size = order.size, across = (size + TILE - 1) / TILE;
	int x = (int) threadIdx.x % TILE, y = (int) threadIdx.x / TILE;

	for (int64_t at = blockIdx.x; at < across * across * order.n_parts; at += gridDim.x)
	{
		int64_t part = at / (across * across), i = at / across % across * TILE,
				j = at % across * TILE;
		int64_t begin = agk_part_begin(linear.n_train, order.n_parts, part);
		int64_t behind = agk_part_begin(linear.n_train, order.n_parts, part + 1);
		bool is_in = i + y < size && j + x < size;
		double *to = products + (part * size + i + y) * size + j + x, sum;

		if (i > j)
			continue;
		sum = is_in ? *to : 0.0;
		for (int64_t b = from; b < from + n_blocks && begin + b * order.block_rows < behind; b++)
		{
			int64_t first = begin + b * order.block_rows;
			int64_t n = behind - first < order.block_rows ? behind - first : order.block_rows;
			double of_block = 0.0;

			__syncthreads();
			for (int r = y; r < n; r += TILE)
			{
				double w = linear.weight != nullptr ? linear.weight[first + r] : 1.0;

				plain[r][x] = cell_of(linear, order, first + r, i + x);
				weighted[r][x] = w * cell_of(linear, order, first + r, j + x);
			}
			__syncthreads();
			for (int r = 0; r < n; r++)
				of_block += weighted[r][x] * plain[r][y];
			sum += of_block;
		}
		if (is_in)
			*to = sum;
	}
}

__global__ void
agk_linear_products_sum(AgDeviceProducts order, double *products)
{
	int64_t n = (int64_t) order.size * order.size;

	for (int64_t i = (int64_t) blockIdx.x * AGK_THREADS + threadIdx.x; i < n;
		 i += (int64_t) gridDim.x * AGK_THREADS)
		for (int64_t part = 1; part < order.n_parts; part++)
			products[i] += products[part * n + i];
}

static AgDeviceStatus
make_products(AgDevice *device, AgDeviceLinear *linear, const AgDeviceProducts *order,
			  double *products, int (*poll)(void *arg), void *arg)
{
	int64_t size = order->size, across = (size + TILE - 1) / TILE;
	int64_t longest = (linear->spec.n_train + order->n_parts - 1) / order->n_parts;
	int64_t most = (longest + order->block_rows - 1) / order->block_rows;
	int64_t n = MOST_WORK / (order->n_parts * order->block_rows * (size * size / 2 + 1));

	n = n < 1 ? 1 : n;
	for (int64_t from = 0; from < most; from += n)
	{
		AGK_TRY(ask(device, poll, arg));
		AGK_LAUNCH(agk_linear_products_of, agk_grid(device, across * across * order->n_parts, 1),
				   AGK_THREADS, 0, device->stream, linear->view, *order, products, from, n);
		AGK_TRY(agk_launched(device, "multiplying columns"));
		AGK_TRY(agk_wait(device));
	}
	AGK_LAUNCH(agk_linear_products_sum, agk_grid(device, size * size, AGK_THREADS), AGK_THREADS, 0,
			   device->stream, *order, products);
	return agk_launched(device, "adding up products of columns");
}

AgDeviceStatus
agk_linear_products(AgDevice *device, AgDeviceLinear *linear, const AgDeviceProducts *order,
					double *products, int (*poll)(void *arg), void *arg)
{
	int64_t n = (int64_t) order->size * order->size;
	AgkArray<double> made = {};
	AgDeviceStatus status;

	AGK_TRY(agk_enter(device));
	if (order->block_rows > MOST_ROWS)
		return agk_refuse(device, "blocks of more than 64 rows");
	status = agk_get(device, order->n_parts * n, &made);
	if (status == AG_DEVICE_OK)
		status = agk_clear(device, made.at, made.n_bytes);
	if (status == AG_DEVICE_OK)
		status = make_products(device, linear, order, made.at, poll, arg);
	if (status == AG_DEVICE_OK)
		status = agk_download(device, products, made.at, n * (int64_t) sizeof(double));
	agk_give(device, &made);
	return status;
}
