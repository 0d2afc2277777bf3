/*
 * net.cu - what a net takes on the device, and its steps, one launch an op.
 *
 * Launches of one stream run one behind the other, which is all that orders the ops; the host waits once a call.
 */
#include "kernels/net.cuh"

#include <stdlib.h>
#include <string.h>

/* Everything, in one place for the taking and the giving back: visits every array with its items and what fills it. */
template <class Visit>
static AgDeviceStatus
each_array(AgDeviceNet *net, const AgDeviceNetSpec *spec, Visit visit)
{
	const float *no_floats = nullptr;
	const uint32_t *no_order = nullptr;

	const uint16_t *no_halves = nullptr;
	int64_t n_numbers = spec->n_rows * spec->number_stride;

	AGK_TRY(visit(&net->room, spec->n_floats, no_floats));
	AGK_TRY(visit(&net->halves, spec->n_halves, no_halves));
	AGK_TRY(visit(&net->numbers, spec->half_numbers ? 0 : n_numbers, spec->numbers));
	AGK_TRY(visit(&net->half_numbers, spec->half_numbers ? n_numbers : 0, no_halves));
	AGK_TRY(visit(&net->row_slots, spec->n_rows * spec->n_slots, spec->row_slots));
	AGK_TRY(visit(&net->slots, (int64_t) spec->n_slots, spec->slots));
	AGK_TRY(visit(&net->train_rows, spec->n_train, spec->train_rows));
	AGK_TRY(visit(&net->order, spec->n_train, no_order));
	AGK_TRY(visit(&net->target, spec->target != nullptr ? spec->n_train : 0, spec->target));
	AGK_TRY(visit(&net->weight, spec->weight != nullptr ? spec->n_train : 0, spec->weight));
	AGK_TRY(visit(&net->class_of, spec->class_of != nullptr ? spec->n_rows : 0, spec->class_of));
	return visit(&net->quantiles, spec->quantiles != nullptr ? (int64_t) spec->n_outputs : 0,
				 spec->quantiles);
}

static void
look(AgDeviceNet *net)
{
	const AgDeviceNetSpec *spec = &net->spec;
	AgkNet *view = &net->view;

	view->room = net->room.at;
	view->halves = net->halves.at;
	view->numbers = net->numbers.at;
	view->half_numbers = net->half_numbers.at;
	view->row_slots = net->row_slots.at;
	view->slots = net->slots.at;
	view->train_rows = net->train_rows.at;
	view->order = net->order.at;
	view->target = net->target.at;
	view->weight = net->weight.at;
	view->class_of = net->class_of.at;
	view->quantiles = net->quantiles.at;
	view->number_stride = spec->number_stride;
	view->waves = spec->waves;
	view->n_numbers = spec->n_numbers;
	view->n_slots = spec->n_slots;
	view->n_inputs = spec->n_inputs;
	view->input_stride = spec->input_stride;
	view->n_waves = spec->n_waves;
	view->n_wave_inputs = spec->n_wave_inputs;
	view->first_wave = spec->first_wave;
	view->n_outputs = spec->n_outputs;
	view->n_batch = spec->n_batch;
	view->n_members = spec->n_members;
	view->no_column = spec->no_column;
	view->loss = spec->loss;
	view->smoothing = spec->smoothing;
	view->bends = spec->bends;
	view->in_pieces = spec->in_pieces;
	view->has_half = spec->has_half;
}

#define HALVES_AT_ONCE (INT64_C(1) << 20)

/* n numbers, rounded on the host. */
static AgDeviceStatus
upload_halves(AgDevice *device, uint16_t *to, const float *from, int64_t n)
{
	int64_t most = n < HALVES_AT_ONCE ? n : HALVES_AT_ONCE;
	AgDeviceStatus status;
	uint16_t *halves;

	if (n == 0)
		return AG_DEVICE_OK;
	status = agk_new(device, (size_t) most, &halves);
	for (int64_t begin = 0; begin < n && status == AG_DEVICE_OK; begin += most)
	{
		int64_t some = n - begin < most ? n - begin : most;

		for (int64_t i = 0; i < some; i++)
			halves[i] = ag_net_bfloat(from[begin + i]);
		status = agk_upload(device, to + begin, halves, some * (int64_t) sizeof(uint16_t));
		if (status == AG_DEVICE_OK)
			status = agk_wait(device);
	}
	free(halves);
	return status;
}

static AgDeviceStatus
take(AgDevice *device, AgDeviceNet *net)
{
	AGK_TRY(each_array(net, &net->spec, [&](auto *array, int64_t n, auto from) {
		AgDeviceStatus status = agk_get(device, n, array);

		if (status != AG_DEVICE_OK)
			return status;
		return from == nullptr ? agk_clear(device, array->at, array->n_bytes)
							   : agk_upload(device, array->at, from, array->n_bytes);
	}));
	if (net->spec.half_numbers)
		AGK_TRY(upload_halves(device, net->half_numbers.at, net->spec.numbers,
							  net->spec.n_rows * net->spec.number_stride));
	AGK_TRY(agk_new(device, (size_t) net->spec.n_ops + 1, &net->ops));
	memcpy(net->ops, net->spec.ops, (size_t) net->spec.n_ops * sizeof(AgDeviceNetOp));
	look(net);
	return agk_wait(device);
}

static AgDeviceStatus
refuse_half(AgDevice *device)
{
	char what[120];

	snprintf(
		what, sizeof(what),
		"products of bfloat16 take a GPU of compute capability 8.0 or more, and GPU %d has %d.%d",
		device->index, device->capability / 10, device->capability % 10);
	return agk_refuse(device, what);
}

AgDeviceStatus
agk_net_create(AgDevice *device, const AgDeviceNetSpec *spec, AgDeviceNet **created)
{
	AgDeviceNet *net;
	AgDeviceStatus status;

	*created = nullptr;
	AGK_TRY(agk_enter(device));
	if (spec->has_half && device->capability < AGK_HALF_CAPABILITY)
		return refuse_half(device);
	AGK_TRY(agk_new(device, 1, &net));
	net->spec = *spec;
	status = take(device, net);
	if (status == AG_DEVICE_OK)
		*created = net;
	else
		agk_net_free(device, net);
	return status;
}

void
agk_net_free(AgDevice *device, AgDeviceNet *net)
{
	if (net == nullptr)
		return;
	(void) each_array(net, &net->spec, [&](auto *array, int64_t n, auto from) {
		(void) n;
		(void) from;
		agk_give(device, array);
		return AG_DEVICE_OK;
	});
	free(net->ops);
	free(net);
}

AgDeviceStatus
agk_net_write(AgDevice *device, AgDeviceNet *net, int64_t at, int64_t n, const float *from)
{
	AGK_TRY(agk_enter(device));
	if (at >= AG_NET_HALVES)
		return upload_halves(device, net->halves.at + (at - AG_NET_HALVES), from, n);
	AGK_TRY(agk_upload(device, net->room.at + at, from, n * (int64_t) sizeof(float)));
	return agk_wait(device);
}

AgDeviceStatus
agk_net_read(AgDevice *device, AgDeviceNet *net, int64_t at, int64_t n, float *to)
{
	AGK_TRY(agk_enter(device));
	return agk_download(device, to, net->room.at + at, n * (int64_t) sizeof(float));
}

AgDeviceStatus
agk_net_order(AgDevice *device, AgDeviceNet *net, const uint32_t *places)
{
	AGK_TRY(agk_enter(device));
	AGK_TRY(agk_upload(device, net->order.at, places, net->order.n_bytes));
	return agk_wait(device);
}

AgDeviceStatus
agk_net_steps(AgDevice *device, AgDeviceNet *net, const AgDeviceNetStep *steps, int n_steps)
{
	AGK_TRY(agk_enter(device));
	for (int s = 0; s < n_steps; s++)
	{
		for (int i = 0; i < net->spec.n_ops; i++)
			agk_net_launch(device, &net->view, &net->ops[i], &steps[s]);
		AGK_TRY(agk_launched(device, "training a neural net"));
	}
	return agk_wait(device);
}
