/* student.c - Student's t against recorded values (tables of the distribution). */
#include <math.h>

#include "unit/unit.h"

#include "engine/base/student.h"

static void
close_to(double got, double expected)
{
	if (!AG_CHECK(fabs(got - expected) <= 1e-9 * (1.0 + fabs(expected))))
		fprintf(stderr, "    got %.15g, expected %.15g\n", got, expected);
}

int
main(void)
{
	/* One degree is Cauchy's distribution, two have a closed form. */
	for (double t = -40.0; t <= 40.0; t += 0.37)
	{
		close_to(ag_student_cdf(t, 1), 0.5 + atan(t) / acos(-1.0));
		close_to(ag_student_cdf(t, 2), 0.5 + t / (2.0 * sqrt(2.0 + t * t)));
	}
	close_to(ag_student_quantile(0.995, 4), 4.604094871415897);
	close_to(ag_student_quantile(0.995, 9), 3.2498355440153697);
	close_to(ag_student_quantile(0.975, 1), 12.706204736432095);
	close_to(ag_student_quantile(0.5, 7), 0.0);
	close_to(ag_student_cdf(0.0, 3), 0.5);
	AG_CHECK(ag_student_cdf((double) INFINITY, 3) == 1.0);
	AG_CHECK(ag_student_cdf(-(double) INFINITY, 3) == 0.0);
	AG_CHECK(isnan(ag_student_cdf((double) NAN, 3)));
	return ag_unit_done("student");
}
