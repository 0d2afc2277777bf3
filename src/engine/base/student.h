/*
 * student.h - Student's t distribution: p-values and confidence bounds of a mean of few values.
 */
#ifndef AG_STUDENT_H
#define AG_STUDENT_H

/* P(T <= t) with `freedom` > 0 degrees of freedom; NaN for a NaN. */
double ag_student_cdf(double t, double freedom);
/* The t with P(T <= t) = p, 0 < p < 1. */
double ag_student_quantile(double p, double freedom);

#endif
