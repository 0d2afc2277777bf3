/*
 * boost_loss.c - parameters that only some losses have.
 */
#include <string.h>

#include "engine/model/boost.h"

AgStatus
ag_boost_check_loss(const char *family, const AgParamSpec *specs, int n_specs,
					const AgBoostParams *params, const AgLossUse *uses, int n_uses, AgError *err)
{
	for (int i = 0; i < n_uses; i++)
	{
		const AgParamSpec *spec = ag_param_find(specs, n_specs, uses[i].param, NULL);
		double value;

		if (spec == NULL || params->loss == uses[i].first || params->loss == uses[i].second)
			continue;
		memcpy(&value, (const char *) params + spec->offset, sizeof value);
		if (value != spec->normal)
			return ag_error_set(err, AG_ERR_OPTION,
								"parameter \"%s\" of family %s needs \"objective\" %s",
								uses[i].param, family, uses[i].objectives);
	}
	return AG_OK;
}
