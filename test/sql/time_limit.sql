-- the time limit is a promise about the whole call, rows, features and storing included: it is kept to a second, with a model, or with an error where it is too short even to read the rows
SET client_min_messages = warning;
CREATE TABLE tl_small AS SELECT i % 50 AS x, (i * 7) % 31 AS z, 'k' || i % 5 AS k, (i % 50) * 2.0 + (i * 7) % 31 AS y FROM generate_series(1, 150) i;
CREATE TABLE tl_large AS SELECT i AS id, i % 97 AS x, (i::bigint * 7919) % 1009 AS z, 'k' || i % 50 AS k, timestamp '2024-01-01' + i * interval '7 minutes' AS at, hashint4(i) / 1e9 AS n,
    (i % 97) * 2.0 + (i::bigint * 7919) % 1009 / 100 + hashint4(i + 1) / 1e9 AS y FROM generate_series(1, 300000) i;
-- A machine that is busy with something else for a second is no fault of the fit: it may try again.
CREATE FUNCTION tl_fit(data text, seconds float8, options jsonb) RETURNS TABLE (kept boolean, outcome text) LANGUAGE plpgsql AS $$
DECLARE began timestamptz;
BEGIN
    FOR try IN 1 .. 3 LOOP
        began := clock_timestamp();
        BEGIN
            PERFORM ag_fit(data, 'y', jsonb_build_object('name', 'tl', 'verbosity', 0, 'time_limit', seconds) || options);
            outcome := 'a model';
        EXCEPTION WHEN query_canceled THEN
            outcome := CASE WHEN sqlerrm ~ format('time limit of %s s', seconds) THEN 'an error that names the limit' ELSE sqlerrm END;
        END;
        kept := extract(epoch FROM clock_timestamp() - began) < seconds + greatest(1, 0.05 * seconds);
        EXIT WHEN kept AND (outcome = 'a model' OR seconds < 0.5);
    END LOOP;
    IF outcome = 'a model' AND ag_predict('tl', '{"x": 1, "z": 2, "k": "k3", "at": null, "n": null, "id": null}'::jsonb) BETWEEN -50 AND 300 THEN
        outcome := 'a model with an answer';
    END IF;
    RETURN NEXT;
END $$;
SELECT * FROM tl_fit('tl_small', 1, '{}');
SELECT * FROM tl_fit('tl_small', 1, '{"presets": "best", "num_stack_levels": 1}');
SELECT * FROM tl_fit('tl_small', 1, '{"presets": "high"}');
SELECT * FROM tl_fit('tl_large', 3, '{}');
SELECT * FROM tl_fit('tl_large', 3, '{"presets": "best", "num_bag_folds": 5, "num_stack_levels": 1}');
SELECT * FROM tl_fit('tl_large', 3, '{"presets": "good"}');
-- one pass over the rows takes longer than that
SELECT * FROM tl_fit('tl_large', 0.02, '{}');
SELECT count(ag_drop(name)) > 0 AS dropped FROM ag_models;
DROP TABLE tl_small, tl_large;
DROP FUNCTION tl_fit;
