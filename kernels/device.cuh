/*
 * device.cuh - a device that was opened: its errors, its memory, and what the other files of this room share.
 */
#ifndef AGK_DEVICE_CUH
#define AGK_DEVICE_CUH

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/device.h"
#include "kernels/launch.cuh"

struct AgDevice
{
	int index;
	int capability;      /* major.minor as 10 major + minor */
	int n_blocks;        /* that fill the device twice over */
	size_t shared_bytes; /* a block may have at most */
	cudaStream_t stream;
	int64_t limit_bytes, used_bytes, peak_bytes;
	bool is_lost;
	char why[256];
};

/* Memory on the device: grows only by agk_get, goes by agk_give. All zero is allowed. */
template <class T> struct AgkArray
{
	T *at;
	int64_t n_bytes;
};

AgDeviceStatus agk_get_bytes(AgDevice *device, int64_t n_bytes, void **at);
void agk_give_bytes(AgDevice *device, void *at, int64_t n_bytes);

/* Room for n items (n = 0 gives none). */
template <class T>
static inline AgDeviceStatus
agk_get(AgDevice *device, int64_t n, AgkArray<T> *array)
{
	void *at = nullptr;
	AgDeviceStatus status;

	array->at = nullptr;
	array->n_bytes = 0;
	if (n <= 0)
		return AG_DEVICE_OK;
	if (n > INT64_MAX / (int64_t) sizeof(T))
		return AG_DEVICE_MEMORY;
	status = agk_get_bytes(device, n * (int64_t) sizeof(T), &at);
	if (status != AG_DEVICE_OK)
		return status;
	array->at = static_cast<T *>(at);
	array->n_bytes = n * (int64_t) sizeof(T);
	return AG_DEVICE_OK;
}

template <class T>
static inline void
agk_give(AgDevice *device, AgkArray<T> *array)
{
	agk_give_bytes(device, array->at, array->n_bytes);
	array->at = nullptr;
	array->n_bytes = 0;
}

/* Every operation begins with it: a thread's device is whatever it used last. */
AgDeviceStatus agk_enter(AgDevice *device);
/* Copies; the host's side may be changed when they return. Zero bytes are fine. */
AgDeviceStatus agk_upload(AgDevice *device, void *to, const void *from, int64_t n_bytes);
AgDeviceStatus agk_download(AgDevice *device, void *to, const void *from, int64_t n_bytes);
AgDeviceStatus agk_copy(AgDevice *device, void *to, const void *from, int64_t n_bytes); /* on it */
AgDeviceStatus agk_clear(AgDevice *device, void *at, int64_t n_bytes);
/* Waits for everything that was launched. */
AgDeviceStatus agk_wait(AgDevice *device);
/* After launches: did they begin? `what` names them. */
AgDeviceStatus agk_launched(AgDevice *device, const char *what);
/* Notes a failed CUDA call; gives the status that it comes to. */
AgDeviceStatus agk_failed(AgDevice *device, cudaError_t error, const char *what);
/* Notes what can't be done. */
AgDeviceStatus agk_refuse(AgDevice *device, const char *what);

/* Room for n items, filled from the host's. */
template <class T>
static inline AgDeviceStatus
agk_get_filled(AgDevice *device, int64_t n, const T *from, AgkArray<T> *array)
{
	AgDeviceStatus status = agk_get(device, n, array);

	if (status != AG_DEVICE_OK)
		return status;
	return agk_upload(device, array->at, from, array->n_bytes);
}

/* n of them on the host, all zero; AG_DEVICE_MEMORY says why. */
template <class T>
static inline AgDeviceStatus
agk_new(AgDevice *device, size_t n, T **made)
{
	*made = static_cast<T *>(calloc(n, sizeof(T)));
	if (*made != nullptr)
		return AG_DEVICE_OK;
	snprintf(device->why, sizeof(device->why), "out of memory");
	return AG_DEVICE_MEMORY;
}

#define AGK_TRY(call)                                                                              \
	do                                                                                             \
	{                                                                                              \
		AgDeviceStatus agk_status_ = (call);                                                       \
                                                                                                   \
		if (agk_status_ != AG_DEVICE_OK)                                                           \
			return agk_status_;                                                                    \
	} while (0)

/* Blocks for n_items of work, n_each a block; at least one, at most what fills the device. */
static inline unsigned
agk_grid(const AgDevice *device, int64_t n_items, int64_t n_each)
{
	int64_t n = (n_items + n_each - 1) / n_each;

	if (n > device->n_blocks)
		n = device->n_blocks;
	return n < 1 ? 1u : (unsigned) n;
}

extern const AgDeviceOps agk_ops;

/* matrix.cu */
AgDeviceStatus agk_matrix_create(AgDevice *device, const AgDeviceBins *bins,
								 AgDeviceMatrix **matrix);
void agk_matrix_free(AgDevice *device, AgDeviceMatrix *matrix);
void agk_matrix_layout(const AgDeviceMatrix *matrix, AgDeviceLayout *layout);
/* binning.cu */
AgDeviceStatus agk_bin_create(AgDevice *device, int64_t n_rows, int64_t n_sample,
							  AgDeviceBinner **binner);
void agk_bin_free(AgDevice *device, AgDeviceBinner *binner);
AgDeviceStatus agk_bin_sort(AgDevice *device, AgDeviceBinner *binner, const double *values,
							int64_t n, uint64_t *keys, int64_t *n_keys);
AgDeviceStatus agk_bin_assign(AgDevice *device, AgDeviceBinner *binner, const double *values,
							  int64_t n, const double *cuts, int32_t n_cuts, uint8_t *bins);
/* boost.cu */
int64_t agk_boost_memory(const AgDeviceShape *shape, const AgDeviceBoostSpec *spec);
AgDeviceStatus agk_boost_create(AgDevice *device, const AgDeviceMatrix *matrix,
								const AgDeviceBoostSpec *spec, AgDeviceBoost **boost);
void agk_boost_free(AgDevice *device, AgDeviceBoost *boost);
AgDeviceStatus agk_boost_valid(AgDevice *device, AgDeviceBoost *boost, double *scores);
/* gradients.cu */
AgDeviceStatus agk_boost_gradients(AgDevice *device, AgDeviceBoost *boost, int output,
								   AgDeviceRange *range);
AgDeviceStatus agk_boost_step(AgDevice *device, AgDeviceBoost *boost, int output,
							  const double *values, AgDeviceRange *range);
AgDeviceStatus agk_boost_unstep(AgDevice *device, AgDeviceBoost *boost, int output);
AgDeviceStatus agk_boost_sums(AgDevice *device, AgDeviceBoost *boost, double fixed_g,
							  double fixed_h, int64_t *sums);
/* metrics.cu */
AgDeviceStatus agk_boost_metric(AgDevice *device, AgDeviceBoost *boost, double *sums);
AgDeviceStatus agk_boost_keep(AgDevice *device, AgDeviceBoost *boost);
AgDeviceStatus agk_boost_kept(AgDevice *device, AgDeviceBoost *boost, double *scores);
/* percentiles.cu */
AgDeviceStatus agk_boost_renew(AgDevice *device, AgDeviceBoost *boost, int output, double scale,
							   double *values);
/* draws.cu */
AgDeviceStatus agk_boost_draw(AgDevice *device, AgDeviceBoost *boost, uint64_t key,
							  AgDeviceRange *range, double *size_g);
/* grow.cu */
AgDeviceStatus agk_boost_grow(AgDevice *device, AgDeviceBoost *boost,
							  const AgDeviceTreeOrder *order, AgDeviceTree *tree);
/* leaves.cu */
AgDeviceStatus agk_boost_add(AgDevice *device, AgDeviceBoost *boost, int output,
							 const double *values);
/* net.cu */
AgDeviceStatus agk_net_create(AgDevice *device, const AgDeviceNetSpec *spec, AgDeviceNet **net);
void agk_net_free(AgDevice *device, AgDeviceNet *net);
AgDeviceStatus agk_net_write(AgDevice *device, AgDeviceNet *net, int64_t at, int64_t n,
							 const float *from);
AgDeviceStatus agk_net_read(AgDevice *device, AgDeviceNet *net, int64_t at, int64_t n, float *to);
AgDeviceStatus agk_net_order(AgDevice *device, AgDeviceNet *net, const uint32_t *places);
AgDeviceStatus agk_net_steps(AgDevice *device, AgDeviceNet *net, const AgDeviceNetStep *steps,
							 int n_steps);

/* knn.cu */
AgDeviceStatus agk_knn_create(AgDevice *device, const AgDeviceKnnSpec *spec, AgDeviceKnn **knn,
							  int64_t *n_at_once);
void agk_knn_free(AgDevice *device, AgDeviceKnn *knn);
AgDeviceStatus agk_knn_search(AgDevice *device, AgDeviceKnn *knn, int64_t first, int64_t n,
							  AgDeviceNeighbor *found, int32_t *n_found);
/* linear.cu */
AgDeviceStatus agk_linear_create(AgDevice *device, const AgDeviceLinearSpec *spec,
								 AgDeviceLinear **linear);
void agk_linear_free(AgDevice *device, AgDeviceLinear *linear);
AgDeviceStatus agk_linear_sum(AgDevice *device, AgDeviceLinear *linear, const double *x,
							  double bend, double *losses, double *gradient, int (*poll)(void *arg),
							  void *arg);
AgDeviceStatus agk_linear_products(AgDevice *device, AgDeviceLinear *linear,
								   const AgDeviceProducts *order, double *products,
								   int (*poll)(void *arg), void *arg);

/* forest.cu */
int64_t agk_forest_memory(AgDevice *device, const AgDeviceShape *shape,
						  const AgDeviceForestSpec *spec, int32_t n_trees);
AgDeviceStatus agk_forest_create(AgDevice *device, const AgDeviceMatrix *matrix,
								 const AgDeviceForestSpec *spec, AgDeviceForest **forest,
								 int32_t *n_at_once);
void agk_forest_free(AgDevice *device, AgDeviceForest *forest);
AgDeviceStatus agk_forest_grow(AgDevice *device, AgDeviceForest *forest, int32_t first, int32_t n,
							   int (*poll)(void *arg), void *arg);
AgDeviceStatus agk_forest_tree(AgDevice *device, AgDeviceForest *forest, int32_t i,
							   AgDeviceForestTree *tree);
AgDeviceStatus agk_forest_fetch(AgDevice *device, AgDeviceForest *forest, int32_t i,
								AgDeviceForestNode *nodes, uint8_t *ranks, uint8_t *out_of_bag);
AgDeviceStatus agk_forest_leaves(AgDevice *device, AgDeviceForest *forest, int32_t i,
								 AgDeviceForestLeaf *leaves, int32_t n, uint32_t *shares);

#endif
