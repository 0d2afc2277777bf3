-- ag_info: what linear models have learnt, by which predictions can be computed again
SET client_min_messages = warning;
CREATE TABLE co AS SELECT i % 37 - 5 AS n, (i * 7 % 101)::float8 AS x, CASE WHEN i % 9 > 0 THEN chr(97 + i % 4) WHEN i % 2 > 0 THEN 'r' || translate(i::text, '0123456789', 'abcdefghij') END AS c, i % 3 = 0 AS f, date '2024-01-01' + i * 11 % 40 * 7 AS d, timestamp '2024-03-01' + i % 30 * interval '7 days' AS t,
    9007199254741000 + i % 23 AS big, 0.5 * (i % 37) - 0.1 * (i * 7 % 101) + (i % 4) * 3 + i * 13 % 7 AS y, (i % 37) + (i * 13) % 11 + i % 4 * 5 > 30 AS b, (ARRAY['lo', 'mid', 'hi'])[1 + ((i % 37) + (i * 13) % 11) / 16] AS s FROM generate_series(1, 600) i;
\set quiet '{"verbosity": 0, "hyperparameters": {"LR": {"proc.min_level_count": 5}}, "fit_weighted_ensemble": false}'
SELECT ag_fit('SELECT n, x, c, f, d, t, big, y FROM co', 'y', :'quiet'::jsonb || '{"name": "co_num"}');
SELECT ag_fit('SELECT n, x, c, f, b FROM co', 'b', :'quiet'::jsonb || '{"name": "co_two"}');
SELECT ag_fit('SELECT n, x, c, s FROM co', 's', :'quiet'::jsonb || '{"name": "co_three"}');
SELECT ag_fit('SELECT n, x, c, y FROM co', 'y', :'quiet'::jsonb || '{"name": "co_q", "problem_type": "quantile", "quantile_levels": [0.9, 0.1]}');
CREATE FUNCTION co_of(model text) RETURNS jsonb LANGUAGE sql AS $$ SELECT ag_info(model) #> '{models,LR,coefficients}' $$;
CREATE FUNCTION co_score(c jsonb, r jsonb, k int) RETURNS float8 LANGUAGE sql AS $$
    SELECT (CASE WHEN k < 0 THEN c -> 'intercept' ELSE c -> 'intercept' -> k END)::float8 + sum((CASE WHEN k < 0 THEN t -> 'coefficient' ELSE t -> 'coefficient' -> k END)::float8 * CASE t ->> 'kind'
        WHEN 'level' THEN (v IS NOT DISTINCT FROM t ->> 'level')::int
        WHEN 'missing' THEN (v IS NULL)::int
        WHEN 'other' THEN (v LIKE 'r_%')::int
        ELSE CASE WHEN t ->> 'feature' LIKE '% (day)' THEN extract(day FROM p::date) WHEN t ->> 'feature' LIKE '% (month)' THEN extract(month FROM p::date)
            WHEN t ->> 'feature' = 't (since d)' THEN extract(epoch FROM (r ->> 't')::timestamp - (r ->> 'd')::date) WHEN t ->> 'unit' = 'day' THEN extract(epoch FROM v::timestamp - '2000-01-01') / 86400 WHEN v IN ('true', 'false') THEN v::boolean::int ELSE (v::numeric - coalesce((t ->> 'from')::numeric, 0))::float8 END END)
    FROM jsonb_array_elements(c -> 'terms') t, LATERAL (SELECT r ->> (t ->> 'feature') AS v, r ->> left(t ->> 'feature', 1) AS p) x
$$;
SELECT DISTINCT t ->> 'feature' AS feature, t ->> 'kind' AS kind, t ->> 'unit' AS unit FROM jsonb_array_elements(co_of('co_num') -> 'terms') t ORDER BY 1, 2;
SELECT (co_of(m) ->> 'link') AS link, co_of(m) -> 'of' AS of, co_of(m) -> 'left_out' AS left_out FROM unnest(ARRAY['co_num', 'co_two', 'co_three', 'co_q']) m;
SELECT bool_and(abs(co_score(w, to_jsonb(co), -1) - ag_predict('co_num', co)) < 1e-4) AS number FROM (SELECT * FROM co LIMIT 60) co, co_of('co_num') w;
SELECT bool_and(abs(1 / (1 + exp(-co_score(w, to_jsonb(co), -1))) - ag_predict_proba('co_two', co, true)) < 1e-6) AS two FROM (SELECT * FROM co LIMIT 60) co, co_of('co_two') w;
SELECT bool_and(abs(exp(e[k]) / (exp(e[1]) + exp(e[2]) + exp(e[3])) - (ag_predict_proba('co_three', co) ->> (w -> 'of' ->> (k - 1)))::float8) < 1e-6) AS three
FROM (SELECT * FROM co LIMIT 60) co, co_of('co_three') w, LATERAL (SELECT ARRAY[co_score(w, to_jsonb(co), 0), co_score(w, to_jsonb(co), 1), co_score(w, to_jsonb(co), 2)] AS e) e, generate_series(1, 3) k;
SELECT bool_and(abs(least(v1, v2) - q[2]) < 1e-4 AND abs(greatest(v1, v2) - q[1]) < 1e-4) AS quantiles
FROM (SELECT * FROM co LIMIT 60) co, co_of('co_q') w, LATERAL (SELECT co_score(w, to_jsonb(co), 0) AS v1, co_score(w, to_jsonb(co), 1) AS v2, ag_predict_quantiles('co_q', co) AS q) e;

-- absolute values make coefficients 0, which are only counted; of too many the greatest are told
SELECT ag_fit('SELECT n, x, c, i % 13 AS noise, y FROM (SELECT *, row_number() OVER () AS i FROM co) s', 'y', '{"name": "co_few", "verbosity": 0, "fit_weighted_ensemble": false, "hyperparameters": {"LR": {"penalty": "L1", "C": 0.02}}}');
SELECT (co_of('co_few') ->> 'zero')::int > 0 AS zeros, bool_and(t ->> 'feature' <> 'noise') AS noise_gone FROM jsonb_array_elements(co_of('co_few') -> 'terms') t;
SELECT ag_fit('SELECT ''v'' || i / 2 AS c, i % 7 AS n, i / 2 % 19 + i % 7 AS y FROM generate_series(1, 4000) i', 'y', '{"name": "co_many", "verbosity": 0, "fit_weighted_ensemble": false, "hyperparameters": {"LR": {}}}');
SELECT jsonb_array_length(co_of('co_many') -> 'terms') AS told, (co_of('co_many') ->> 'left_out')::int > 0 AS more;

-- bags, stackers, bent columns, columns of a model's own
SELECT ag_fit('SELECT n, exp(x / 8) AS e, c, y FROM co', 'y', '{"name": "co_bag", "verbosity": 0, "num_bag_folds": 3, "num_stack_levels": 1, "dynamic_stacking": false, "hyperparameters": {"LR": {}}}');
SELECT m -> 'model' AS model, string_agg(DISTINCT concat_ws(' ', t ->> 'feature', t ->> 'kind'), ', ' ORDER BY concat_ws(' ', t ->> 'feature', t ->> 'kind')) FILTER (WHERE t ->> 'kind' <> 'level') AS terms
FROM jsonb_each(ag_info('co_bag') -> 'models') AS b (name, info), jsonb_array_elements(info -> 'coefficients') m, jsonb_array_elements(m -> 'terms') t GROUP BY 1 ORDER BY 1;
SELECT ag_fit('SELECT n, c, y FROM co', 'y', '{"name": "co_own", "verbosity": 0, "fit_weighted_ensemble": false, "hyperparameters": {"LR": {"ag.prep_params": ["OOFTargetEncodingFeatureGenerator"]}}}');
SELECT DISTINCT t ->> 'feature' AS feature FROM jsonb_array_elements(co_of('co_own') -> 'terms') t ORDER BY 1;

-- for those who may inspect
CREATE ROLE co_reader;
SELECT ag_grant('co_num', 'co_reader', 'predict');
SET ROLE co_reader;
SELECT co_of('co_num') IS NULL AS hidden;
RESET ROLE;
SELECT ag_grant('co_num', 'co_reader', 'inspect');
SET ROLE co_reader;
SELECT co_of('co_num') IS NULL AS hidden;
RESET ROLE;

-- one that didn't converge says so
SET client_min_messages = notice;
SELECT ag_fit('SELECT n, x, c, f, b FROM co', 'b', '{"name": "co_short", "verbosity": 0, "fit_weighted_ensemble": false, "hyperparameters": {"LR": {"max_iter": 2}}}');
SELECT ag_info('co_short') -> 'warnings' AS warnings, ag_info('co_short') #> '{plan,models,0,stopped_by}' AS stopped_by;
SET client_min_messages = warning;
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models WHERE name LIKE 'co\_%';
DROP TABLE co;
DROP FUNCTION co_of, co_score;
DROP OWNED BY co_reader;
DROP ROLE co_reader;
