-- ag_pg 0.1.0: complain if the script is sourced in psql rather than by CREATE EXTENSION
\echo Use "CREATE EXTENSION ag_pg" to load this file. \quit

-- The catalogue: plain tables, dumped with the database, granted to nobody. See src/pg/catalog.h.
CREATE TABLE @extschema@.ag_predictor (
    id uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
    name text COLLATE "C" NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    pinned boolean NOT NULL DEFAULT false,
    owner text NOT NULL,
    data text NOT NULL,
    label text NOT NULL,
    problem_type text NOT NULL,
    eval_metric text NOT NULL,
    options jsonb NOT NULL,
    rows bigint NOT NULL,
    rows_left_out bigint NOT NULL,
    classes jsonb,
    created_at timestamptz NOT NULL,
    time_limit double precision,
    fit_time double precision NOT NULL,
    best_model text NOT NULL,
    score_val double precision,
    plan jsonb NOT NULL,
    warnings jsonb NOT NULL,
    format integer NOT NULL,
    decision_threshold double precision CHECK (decision_threshold BETWEEN 0 AND 1),
    UNIQUE (name, version)
);

CREATE TABLE @extschema@.ag_predictor_feature (
    predictor uuid NOT NULL REFERENCES @extschema@.ag_predictor ON DELETE CASCADE,
    ordinal integer NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    kind text NOT NULL,
    used boolean NOT NULL,
    became text,
    dropped_why text,
    missing bigint NOT NULL,
    distinct_values bigint,
    min double precision,
    max double precision,
    mean double precision,
    categories jsonb,
    PRIMARY KEY (predictor, ordinal)
);

CREATE TABLE @extschema@.ag_member (
    predictor uuid NOT NULL REFERENCES @extschema@.ag_predictor ON DELETE CASCADE,
    ordinal integer NOT NULL CHECK (ordinal > 0),
    name text NOT NULL,
    family text NOT NULL,
    stack_level integer NOT NULL,
    fold integer,
    fit_order integer NOT NULL,
    hyperparameters jsonb NOT NULL,
    score_val double precision,
    fit_time double precision NOT NULL,
    predict_time double precision NOT NULL,
    device text NOT NULL,
    num_gpus double precision NOT NULL,
    num_cpus integer NOT NULL,
    can_infer boolean NOT NULL,
    temperature double precision,
    quantile_shifts jsonb,
    inputs jsonb,
    history jsonb,
    PRIMARY KEY (predictor, ordinal)
);

-- member 0 is the pipeline (columns, encoders, classes); 2147483647 the out-of-fold predictions; the others are ag_member.ordinal.
CREATE TABLE @extschema@.ag_member_part (
    predictor uuid NOT NULL REFERENCES @extschema@.ag_predictor ON DELETE CASCADE,
    member integer NOT NULL CHECK (member >= 0),
    part integer NOT NULL CHECK (part >= 0),
    data bytea NOT NULL,
    checksum bigint NOT NULL,
    PRIMARY KEY (predictor, member, part)
);
ALTER TABLE @extschema@.ag_member_part ALTER COLUMN data SET STORAGE EXTERNAL;

-- predictor: the name that all its versions share; roles by name, 'public' for all of them.
CREATE TABLE @extschema@.ag_predictor_grant (
    predictor text COLLATE "C" NOT NULL,
    grantee text COLLATE "C" NOT NULL,
    privilege text COLLATE "C" NOT NULL CHECK (privilege IN ('predict', 'inspect')),
    PRIMARY KEY (predictor, grantee, privilege)
);

-- One asynchronous fit a row. home: the cluster, database and timeline that it was submitted in. ..._ns: the moments of ..._at and expected_end on
-- the machine's clock that nobody sets, which counts from when that was started.
CREATE TABLE @extschema@.ag_job (
    id bigint PRIMARY KEY,
    owner text NOT NULL,
    state text NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    home text NOT NULL,
    model text NOT NULL,
    log text NOT NULL DEFAULT '',
    version integer,
    data text NOT NULL,
    label text NOT NULL,
    options jsonb NOT NULL,
    submitted_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    phase text,
    percent double precision,
    expected_end timestamptz,
    score double precision,
    message text,
    started_ns bigint,
    ended_ns bigint,
    expected_ns bigint
) WITH (fillfactor = 50);
CREATE SEQUENCE @extschema@.ag_job_id_seq OWNED BY @extschema@.ag_job.id;

-- What is to be run, and as whom: so this one stays a superuser's (whoever runs this script as), and is not dumped. See src/pg/job.h.
CREATE TABLE @extschema@.ag_job_order (
    id bigint PRIMARY KEY,
    home text NOT NULL,
    started boolean NOT NULL DEFAULT false,
    role oid NOT NULL,
    role_name text NOT NULL,
    session_role oid NOT NULL,
    source text NOT NULL,
    data text NOT NULL,
    label text NOT NULL,
    options jsonb NOT NULL,
    settings text NOT NULL
);
REVOKE ALL ON @extschema@.ag_job_order FROM PUBLIC;
COMMENT ON TABLE @extschema@.ag_job_order IS
    'what jobs that have not ended are to run, and as whom; it must belong to a superuser; see ag_jobs';
COMMENT ON COLUMN @extschema@.ag_job_order.id IS 'of the job, in ag_job';
COMMENT ON COLUMN @extschema@.ag_job_order.home IS 'cluster, database and timeline that it may run in';
COMMENT ON COLUMN @extschema@.ag_job_order.started IS 'whether a worker has taken it';
COMMENT ON COLUMN @extschema@.ag_job_order.role IS 'role that it runs as';
COMMENT ON COLUMN @extschema@.ag_job_order.role_name IS 'name of that role when it was submitted';
COMMENT ON COLUMN @extschema@.ag_job_order.session_role IS 'role that had logged in';
COMMENT ON COLUMN @extschema@.ag_job_order.source IS 'table (with its schema) or query that is read';
COMMENT ON COLUMN @extschema@.ag_job_order.data IS 'the same as it was given';
COMMENT ON COLUMN @extschema@.ag_job_order.label IS 'column that it is to predict';
COMMENT ON COLUMN @extschema@.ag_job_order.options IS 'of the fit';
COMMENT ON COLUMN @extschema@.ag_job_order.settings IS 'settings that it runs with, a name and a value in turn, a line each';

-- The tables belong to whoever owns the extension (a database owner can then dump and restore them) and are granted
-- to nobody; their rows are the user's data, so pg_dump takes them along.
ALTER TABLE @extschema@.ag_predictor OWNER TO @extowner@;
ALTER TABLE @extschema@.ag_predictor_feature OWNER TO @extowner@;
ALTER TABLE @extschema@.ag_member OWNER TO @extowner@;
ALTER TABLE @extschema@.ag_member_part OWNER TO @extowner@;
ALTER TABLE @extschema@.ag_predictor_grant OWNER TO @extowner@;
ALTER TABLE @extschema@.ag_job OWNER TO @extowner@;

REVOKE ALL ON @extschema@.ag_predictor, @extschema@.ag_predictor_feature, @extschema@.ag_member,
    @extschema@.ag_member_part, @extschema@.ag_predictor_grant, @extschema@.ag_job FROM PUBLIC;
REVOKE ALL ON @extschema@.ag_job_id_seq FROM PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_predictor', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_predictor_feature', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_member', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_member_part', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_predictor_grant', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_job', $$WHERE state NOT IN ('queued', 'running')$$);
SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_job_id_seq', '');

COMMENT ON TABLE @extschema@.ag_predictor IS
    'one fitted version of a predictor a row; read it through ag_models, ag_info and ag_leaderboard';
COMMENT ON COLUMN @extschema@.ag_predictor.decision_threshold IS 'probability above which a row of a binary problem is positive; NULL: a half; see ag_set_decision_threshold';
COMMENT ON COLUMN @extschema@.ag_member.quantile_shifts IS 'what its quantiles, in ascending order, are moved by when it predicts by itself (conformal calibration); NULL: nothing';
COMMENT ON COLUMN @extschema@.ag_member.temperature IS 'what the logarithms of its probabilities are divided by when it predicts by itself; NULL: nothing';
COMMENT ON COLUMN @extschema@.ag_predictor.pinned IS 'made the current version by ag_activate; the highest version is current when none is pinned';
COMMENT ON COLUMN @extschema@.ag_predictor.owner IS 'name of the role that may use, refit and drop it';
COMMENT ON COLUMN @extschema@.ag_predictor.rows IS 'rows trained on and validated on';
COMMENT ON COLUMN @extschema@.ag_predictor.rows_left_out IS 'rows whose label was NULL';
COMMENT ON COLUMN @extschema@.ag_predictor.classes IS 'names of the classes in their order; NULL for regression';
COMMENT ON COLUMN @extschema@.ag_predictor.time_limit IS 'seconds that were allowed; NULL: no limit';
COMMENT ON COLUMN @extschema@.ag_predictor.fit_time IS 'seconds that the whole call took';
COMMENT ON COLUMN @extschema@.ag_predictor.score_val IS 'validation score of best_model by eval_metric; higher is better';
COMMENT ON COLUMN @extschema@.ag_predictor.id IS 'what the other tables know this version by';
COMMENT ON COLUMN @extschema@.ag_predictor.name IS 'of the predictor; all its versions share it';
COMMENT ON COLUMN @extschema@.ag_predictor.version IS 'counts from 1 for each name; ''name@3'' means that one';
COMMENT ON COLUMN @extschema@.ag_predictor.data IS 'table or query that it was fitted on, as given to ag_fit';
COMMENT ON COLUMN @extschema@.ag_predictor.label IS 'column that it predicts';
COMMENT ON COLUMN @extschema@.ag_predictor.problem_type IS 'binary, multiclass, regression or quantile';
COMMENT ON COLUMN @extschema@.ag_predictor.eval_metric IS 'metric that its scores are by';
COMMENT ON COLUMN @extschema@.ag_predictor.options IS 'those given to ag_fit, and the presets that ag_pg.default_presets gave';
COMMENT ON COLUMN @extschema@.ag_predictor.created_at IS 'when it was stored';
COMMENT ON COLUMN @extschema@.ag_predictor.best_model IS 'the member that predicts, by its name in ag_member';
COMMENT ON COLUMN @extschema@.ag_predictor.plan IS 'what the fit did; the option replay repeats it';
COMMENT ON COLUMN @extschema@.ag_predictor.warnings IS 'warnings of the fit, an array of texts';
COMMENT ON COLUMN @extschema@.ag_predictor.format IS 'of the bytes in ag_member_part';
COMMENT ON TABLE @extschema@.ag_predictor_feature IS 'one column that a predictor was trained on a row';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.predictor IS 'the id in ag_predictor';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.ordinal IS 'place among the columns, from 1 on';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.name IS 'of the column';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.type IS 'SQL type of the column';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.kind IS 'what the column was taken for: number, category, text, ...';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.used IS 'whether the models see anything of it';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.became IS 'what they see of it; NULL: nothing';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.dropped_why IS 'why no model uses it; NULL where used';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.missing IS 'training rows in which it was NULL';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.distinct_values IS 'NULL: not counted';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.min IS 'smallest number; NULL: it has none';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.max IS 'largest number; NULL: it has none';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.mean IS 'mean of its numbers; NULL: it has none';
COMMENT ON COLUMN @extschema@.ag_predictor_feature.categories IS 'the first 100 of its categories, the commonest first; NULL: it has none';
COMMENT ON TABLE @extschema@.ag_member IS 'one model of a predictor''s ensemble a row';
COMMENT ON COLUMN @extschema@.ag_member.fit_time IS 'seconds of its own, without those of its inputs';
COMMENT ON COLUMN @extschema@.ag_member.predict_time IS 'seconds of its own to predict the validation rows';
COMMENT ON COLUMN @extschema@.ag_member.inputs IS 'the models it combines and their weights; NULL for a model that reads the columns';
COMMENT ON COLUMN @extschema@.ag_member.history IS 'how its metric on the validation rows went round by round, see ag_learning_curves; NULL: it has no rounds';
COMMENT ON COLUMN @extschema@.ag_member.predictor IS 'the id in ag_predictor';
COMMENT ON COLUMN @extschema@.ag_member.ordinal IS 'number of the member within its predictor, from 1 on';
COMMENT ON COLUMN @extschema@.ag_member.name IS 'of the model; ''predictor/name'' predicts with it alone';
COMMENT ON COLUMN @extschema@.ag_member.family IS 'GBM, LR, ... as in ag_families(), or ENS_WEIGHTED: a weighted mean of others';
COMMENT ON COLUMN @extschema@.ag_member.stack_level IS '1: it looks at columns; above: at models of the level below, too';
COMMENT ON COLUMN @extschema@.ag_member.fold IS 'which fold of a bag it was not trained on, from 1 on; NULL: it is no part of a bag';
COMMENT ON COLUMN @extschema@.ag_member.fit_order IS 'order in which models were fitted; the folds of a bag have the bag''s';
COMMENT ON COLUMN @extschema@.ag_member.hyperparameters IS 'that it was trained with';
COMMENT ON COLUMN @extschema@.ag_member.score_val IS 'validation score by the predictor''s eval_metric, higher is better; NULL: none';
COMMENT ON COLUMN @extschema@.ag_member.device IS 'cpu, or the GPU that it was trained on';
COMMENT ON COLUMN @extschema@.ag_member.num_gpus IS 'GPUs that its training had, perhaps a share of one';
COMMENT ON COLUMN @extschema@.ag_member.num_cpus IS 'CPUs that its training had';
COMMENT ON COLUMN @extschema@.ag_member.can_infer IS 'false: it can''t predict any more, as what it takes was not kept';
COMMENT ON TABLE @extschema@.ag_predictor_grant IS
    'one right of one role on one predictor a row: predict (use it) or inspect (see what it was made of too); see ag_grant';
COMMENT ON COLUMN @extschema@.ag_predictor_grant.predictor IS 'name of the predictor; the right is on all its versions';
COMMENT ON COLUMN @extschema@.ag_predictor_grant.grantee IS 'name of the role; public: every role';
COMMENT ON COLUMN @extschema@.ag_predictor_grant.privilege IS 'predict or inspect';
COMMENT ON TABLE @extschema@.ag_job IS 'one asynchronous fit a row; read it through ag_jobs';
COMMENT ON COLUMN @extschema@.ag_job.id IS 'for ag_wait, ag_cancel and ag_job_log';
COMMENT ON COLUMN @extschema@.ag_job.owner IS 'name of the role that it runs as';
COMMENT ON COLUMN @extschema@.ag_job.state IS 'queued, running, succeeded, failed or cancelled, as last written down; ag_jobs knows whether it is still so';
COMMENT ON COLUMN @extschema@.ag_job.home IS 'cluster, database and timeline that it was submitted in, where alone it may run';
COMMENT ON COLUMN @extschema@.ag_job.model IS 'name of the predictor';
COMMENT ON COLUMN @extschema@.ag_job.log IS 'what it has said, a line a message';
COMMENT ON COLUMN @extschema@.ag_job.version IS 'of the predictor, once it is stored; NULL before';
COMMENT ON COLUMN @extschema@.ag_job.data IS 'table or query that it is fitted on';
COMMENT ON COLUMN @extschema@.ag_job.label IS 'column that it is to predict';
COMMENT ON COLUMN @extschema@.ag_job.options IS 'those given, and the presets that ag_pg.default_presets gave';
COMMENT ON COLUMN @extschema@.ag_job.submitted_at IS 'when it was submitted';
COMMENT ON COLUMN @extschema@.ag_job.started_at IS 'when it began to run; NULL: it has not';
COMMENT ON COLUMN @extschema@.ag_job.ended_at IS 'when it ended; NULL: it has not';
COMMENT ON COLUMN @extschema@.ag_job.phase IS 'what it does, or did last; NULL: nothing yet';
COMMENT ON COLUMN @extschema@.ag_job.percent IS 'done of the whole fit; NULL: not known';
COMMENT ON COLUMN @extschema@.ag_job.expected_end IS 'when it is expected to end; NULL: not known';
COMMENT ON COLUMN @extschema@.ag_job.score IS 'validation score of the best model so far by the eval_metric, higher is better; NULL: none yet';
COMMENT ON COLUMN @extschema@.ag_job.message IS 'last line of its log, or why it failed';
COMMENT ON COLUMN @extschema@.ag_job.started_ns IS 'started_at in nanoseconds of a clock that nobody sets, which counts from the machine''s start; NULL: not started';
COMMENT ON COLUMN @extschema@.ag_job.ended_ns IS 'ended_at by that clock; NULL: it has not ended';
COMMENT ON COLUMN @extschema@.ag_job.expected_ns IS 'expected_end by that clock; NULL: not known';
COMMENT ON TABLE @extschema@.ag_member_part IS 'the bytes of a member, in parts of 8 MB; member 0 is the pipeline, 2147483647 the out-of-fold predictions';
COMMENT ON COLUMN @extschema@.ag_member_part.predictor IS 'the id in ag_predictor';
COMMENT ON COLUMN @extschema@.ag_member_part.member IS 'the ordinal in ag_member; 0: the pipeline; 2147483647: the out-of-fold predictions';
COMMENT ON COLUMN @extschema@.ag_member_part.part IS 'place of the part within the member, from 0 on';
COMMENT ON COLUMN @extschema@.ag_member_part.data IS 'the bytes';
COMMENT ON COLUMN @extschema@.ag_member_part.checksum IS 'hash of the bytes; another one is an error (data_corrupted)';

CREATE FUNCTION @extschema@.ag_fit(data text, label text, options jsonb DEFAULT '{}') RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 AS 'MODULE_PATHNAME', 'ag_sql_fit';
COMMENT ON FUNCTION @extschema@.ag_fit(text, text, jsonb) IS
    'trains a predictor of the column label on a table or query, stores it and gives its name (with the option dry_run only the plan, as JSON); ag_options() lists the options';

CREATE FUNCTION @extschema@.ag_fit_async(data text, label text, options jsonb DEFAULT '{}') RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME', 'ag_sql_fit_async';
COMMENT ON FUNCTION @extschema@.ag_fit_async(text, text, jsonb) IS
    'submits a job that fits as ag_fit does, and gives its id; it starts when the transaction commits, runs as you, and outlives the session; ag_jobs shows it';

CREATE FUNCTION @extschema@.ag_wait(job bigint, timeout double precision DEFAULT NULL) RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME', 'ag_sql_wait';
COMMENT ON FUNCTION @extschema@.ag_wait(bigint, double precision) IS
    'waits until a job has ended, at most timeout seconds (NULL: as long as it takes), and gives its state then: succeeded, failed or cancelled, or else queued or running';

CREATE FUNCTION @extschema@.ag_cancel(job bigint) RETURNS boolean
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME', 'ag_sql_cancel';
COMMENT ON FUNCTION @extschema@.ag_cancel(bigint) IS
    'stops a job, at once when it runs, with the transaction when it is still queued; false: it had ended by itself';

CREATE FUNCTION @extschema@.ag_job_log(job bigint) RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 1000 AS 'MODULE_PATHNAME', 'ag_sql_job_log';
COMMENT ON FUNCTION @extschema@.ag_job_log(bigint) IS
    'what a job has said so far, a line a message, with the seconds since it started';

CREATE FUNCTION @extschema@.ag_job_state(id bigint, owner text, state text, home text) RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'ag_sql_job_state';
COMMENT ON FUNCTION @extschema@.ag_job_state(bigint, text, text, text) IS
    'state of a row of ag_job: failed where its worker is no more, NULL where the current role may not see it';

CREATE FUNCTION @extschema@.ag_running_fits()
    RETURNS TABLE (pid integer, owner text, model text, data text, label text, phase text, percent double precision,
        started_at timestamptz, elapsed double precision, remaining double precision, score double precision, message text)
    LANGUAGE c VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 2 AS 'MODULE_PATHNAME', 'ag_sql_running_fits';
COMMENT ON FUNCTION @extschema@.ag_running_fits() IS
    'fits that run in sessions of this database, your own ones (a superuser sees all); ag_jobs shows them among the others';

CREATE FUNCTION @extschema@.ag_job_seconds(from_at timestamptz, from_ns bigint, to_at timestamptz, to_ns bigint) RETURNS double precision
    LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ag_sql_job_seconds';
COMMENT ON FUNCTION @extschema@.ag_job_seconds(timestamptz, bigint, timestamptz, bigint) IS
    'seconds between two moments of a job, never less than 0: by the clock that nobody sets where both have their nanoseconds on it, else by the clock on the wall; a moment without a time is now';

CREATE VIEW @extschema@.ag_jobs WITH (security_barrier) AS
    SELECT j.id, j.now AS state, j.phase, j.model, j.version,
        CASE WHEN j.started_at IS NOT NULL THEN j.percent END AS percent,
        CASE WHEN j.started_at IS NOT NULL THEN
            @extschema@.ag_job_seconds(j.started_at, j.started_ns, j.ended_at, j.ended_ns) ELSE 0 END AS elapsed,
        CASE WHEN j.now = 'running' AND j.expected_end IS NOT NULL THEN
            @extschema@.ag_job_seconds(NULL, NULL, j.expected_end, j.expected_ns) END AS remaining,
        j.score,
        CASE WHEN j.now = j.state THEN j.message WHEN j.state = 'queued' THEN
            'the job came with a copy of its database, and is left to where it was submitted; submit it again to have it run here'
            ELSE 'the job ended with its worker: that was terminated, or the server stopped' END AS message,
        j.data, j.label, j.options, j.owner, j.submitted_at, j.started_at, j.ended_at, NULL::integer AS pid
    FROM (SELECT *, @extschema@.ag_job_state(id, owner, state, home) AS now FROM @extschema@.ag_job OFFSET 0) j
    WHERE j.now IS NOT NULL
    UNION ALL
    SELECT NULL, 'running', r.phase, r.model, NULL, r.percent, r.elapsed, r.remaining, r.score, r.message, r.data, r.label, NULL, r.owner, r.started_at, r.started_at, NULL, r.pid
    FROM @extschema@.ag_running_fits() r;
COMMENT ON VIEW @extschema@.ag_jobs IS 'your fits (a superuser sees all): those of sessions while they run; asynchronous ones that wait and run, and for a time those that have ended';
COMMENT ON COLUMN @extschema@.ag_jobs.id IS 'for ag_wait, ag_cancel and ag_job_log; NULL: a fit that runs in a session';
COMMENT ON COLUMN @extschema@.ag_jobs.pid IS 'of the session that a fit runs in, for pg_cancel_backend; NULL: an asynchronous one';
COMMENT ON COLUMN @extschema@.ag_jobs.state IS 'queued, running, succeeded, failed or cancelled';
COMMENT ON COLUMN @extschema@.ag_jobs.phase IS 'what it does, or did last';
COMMENT ON COLUMN @extschema@.ag_jobs.version IS 'of the model, once it is stored';
COMMENT ON COLUMN @extschema@.ag_jobs.percent IS 'done of the whole fit; NULL: not known';
COMMENT ON COLUMN @extschema@.ag_jobs.elapsed IS 'seconds that it has run, or ran';
COMMENT ON COLUMN @extschema@.ag_jobs.remaining IS 'seconds that it is expected to run on; NULL: not known';
COMMENT ON COLUMN @extschema@.ag_jobs.score IS 'validation score of the best model so far by the eval_metric, higher is better; NULL: none yet';
COMMENT ON COLUMN @extschema@.ag_jobs.message IS 'last line of its log, or why it failed';
COMMENT ON COLUMN @extschema@.ag_jobs.model IS 'name of the predictor';
COMMENT ON COLUMN @extschema@.ag_jobs.data IS 'table or query that it is fitted on';
COMMENT ON COLUMN @extschema@.ag_jobs.label IS 'column that it is to predict';
COMMENT ON COLUMN @extschema@.ag_jobs.options IS 'of the fit; NULL: one in a session';
COMMENT ON COLUMN @extschema@.ag_jobs.owner IS 'role that it runs as';
COMMENT ON COLUMN @extschema@.ag_jobs.submitted_at IS 'when it was submitted';
COMMENT ON COLUMN @extschema@.ag_jobs.started_at IS 'when it began to run; NULL: it has not';
COMMENT ON COLUMN @extschema@.ag_jobs.ended_at IS 'when it ended; NULL: it has not';
ALTER VIEW @extschema@.ag_jobs OWNER TO @extowner@;
REVOKE ALL ON @extschema@.ag_jobs FROM PUBLIC;
GRANT SELECT ON @extschema@.ag_jobs TO PUBLIC;

CREATE FUNCTION @extschema@.ag_stats_read()
    RETURNS TABLE (fits bigint, fits_failed bigint, fits_cancelled bigint, fit_rows bigint, fit_time double precision,
        gpu_time double precision, predictions bigint, cache_hits bigint, shared_hits bigint,
        cache_misses bigint, shared_models bigint, shared_bytes bigint, since timestamptz)
    LANGUAGE c VOLATILE PARALLEL SAFE ROWS 1 AS 'MODULE_PATHNAME', 'ag_sql_stats_read';
COMMENT ON FUNCTION @extschema@.ag_stats_read() IS 'what the view ag_stats shows';

CREATE FUNCTION @extschema@.ag_stats_reset() RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_stats_reset';
COMMENT ON FUNCTION @extschema@.ag_stats_reset() IS 'starts the counts of ag_stats again; for superusers, or whom they grant it to';
REVOKE ALL ON FUNCTION @extschema@.ag_stats_reset() FROM PUBLIC;

CREATE VIEW @extschema@.ag_stats AS SELECT * FROM @extschema@.ag_stats_read();
COMMENT ON VIEW @extschema@.ag_stats IS
    'counts over all databases of the cluster since it was started or ag_stats_reset(); before PostgreSQL 17 they need ag_pg in shared_preload_libraries';
COMMENT ON COLUMN @extschema@.ag_stats.fits IS 'fits that were stored, asynchronous ones included';
COMMENT ON COLUMN @extschema@.ag_stats.fits_failed IS 'fits that ended in an error';
COMMENT ON COLUMN @extschema@.ag_stats.fits_cancelled IS 'fits that were cancelled, or had too little time for any model';
COMMENT ON COLUMN @extschema@.ag_stats.fit_rows IS 'rows that those stored were fitted on';
COMMENT ON COLUMN @extschema@.ag_stats.fit_time IS 'seconds that those took';
COMMENT ON COLUMN @extschema@.ag_stats.gpu_time IS 'seconds of whole GPUs that their models took';
COMMENT ON COLUMN @extschema@.ag_stats.predictions IS 'rows predicted by ag_predict and its kin, and by ag_predict_table';
COMMENT ON COLUMN @extschema@.ag_stats.cache_hits IS 'times that a statement found a model in its session''s cache';
COMMENT ON COLUMN @extschema@.ag_stats.shared_hits IS 'times that it found one that another session had decoded, in shared memory';
COMMENT ON COLUMN @extschema@.ag_stats.cache_misses IS 'times that a model had to be read from its table and decoded';
COMMENT ON COLUMN @extschema@.ag_stats.shared_models IS 'decoded models in shared memory now (ag_pg.shared_model_cache_size)';
COMMENT ON COLUMN @extschema@.ag_stats.shared_bytes IS 'bytes of shared memory that they take, and dropped ones that sessions have not let go of yet';
COMMENT ON COLUMN @extschema@.ag_stats.since IS 'when the counts began';
ALTER VIEW @extschema@.ag_stats OWNER TO @extowner@;
GRANT SELECT ON @extschema@.ag_stats TO PUBLIC;

CREATE FUNCTION @extschema@.ag_version() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ag_sql_version';
COMMENT ON FUNCTION @extschema@.ag_version() IS
    'version of the loaded library (the SQL objects'' version is in pg_extension)';

-- --- predicting. Strict where a NULL model or row can only give NULL; STABLE because a model may be fitted again.

CREATE FUNCTION @extschema@.ag_predict_support(internal) RETURNS internal
    LANGUAGE c STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ag_sql_predict_support';
COMMENT ON FUNCTION @extschema@.ag_predict_support(internal) IS
    'tells the planner what predictions cost, and how to predict from a row''s columns, without the row';

CREATE FUNCTION @extschema@.ag_predict_columns(model text, called oid, columns text[], VARIADIC "values" "any") RETURNS double precision
    LANGUAGE c STABLE PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_columns';
COMMENT ON FUNCTION @extschema@.ag_predict_columns(text, oid, text[], "any") IS
    'what the planner makes of ag_predict with a row: for it alone to call';

CREATE FUNCTION @extschema@.ag_predict_class_columns(model text, called oid, columns text[], VARIADIC "values" "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_class_columns';
COMMENT ON FUNCTION @extschema@.ag_predict_class_columns(text, oid, text[], "any") IS
    'what the planner makes of ag_predict_class with a row: for it alone to call';

CREATE FUNCTION @extschema@.ag_predict_proba_columns(model text, called oid, columns text[], VARIADIC "values" "any") RETURNS jsonb
    LANGUAGE c STABLE PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_proba_columns';
COMMENT ON FUNCTION @extschema@.ag_predict_proba_columns(text, oid, text[], "any") IS
    'what the planner makes of ag_predict_proba with a row: for it alone to call';

CREATE FUNCTION @extschema@.ag_predict_quantiles_columns(model text, called oid, columns text[], VARIADIC "values" "any") RETURNS double precision[]
    LANGUAGE c STABLE PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_quantiles_columns';
COMMENT ON FUNCTION @extschema@.ag_predict_quantiles_columns(text, oid, text[], "any") IS
    'what the planner makes of ag_predict_quantiles with a row: for it alone to call';

CREATE FUNCTION @extschema@.ag_predict(model text, features record) RETURNS double precision
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_record';
COMMENT ON FUNCTION @extschema@.ag_predict(text, record) IS
    'predicted number, the quantile nearest to the middle of a quantile model, or the class when the label is numeric or boolean (1/0); columns are matched by name; the row is a table''s or sub-query''s alias; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict(model text, features jsonb) RETURNS double precision
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_jsonb';
COMMENT ON FUNCTION @extschema@.ag_predict(text, jsonb) IS
    'predicted number, the quantile nearest to the middle of a quantile model, or the class when the label is numeric or boolean (1/0); columns are matched by name; the row is a JSON object; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict(model text, features text) RETURNS double precision
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_text';
COMMENT ON FUNCTION @extschema@.ag_predict(text, text) IS
    'predicted number, the quantile nearest to the middle of a quantile model, or the class when the label is numeric or boolean (1/0); columns are matched by name; the row is a JSON object given as text; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict(model text, features record, sample anycompatible) RETURNS anycompatible
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_typed_record';
COMMENT ON FUNCTION @extschema@.ag_predict(text, record, anycompatible) IS
    'prediction as a value of the sample''s type, as in ag_predict(''m'', t, NULL::integer); the row is a table''s or sub-query''s alias; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict(model text, features jsonb, sample anycompatible) RETURNS anycompatible
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_typed_jsonb';
COMMENT ON FUNCTION @extschema@.ag_predict(text, jsonb, anycompatible) IS
    'prediction as a value of the sample''s type, as in ag_predict(''m'', t, NULL::integer); the row is a JSON object; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict(model text, features text, sample anycompatible) RETURNS anycompatible
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_typed_text';
COMMENT ON FUNCTION @extschema@.ag_predict(text, text, anycompatible) IS
    'prediction as a value of the sample''s type, as in ag_predict(''m'', t, NULL::integer); the row is a JSON object given as text; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_class(model text, features record) RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_class_record';
COMMENT ON FUNCTION @extschema@.ag_predict_class(text, record) IS
    'predicted class of a classifier; the row is a table''s or sub-query''s alias; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_class(model text, features jsonb) RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_class_jsonb';
COMMENT ON FUNCTION @extschema@.ag_predict_class(text, jsonb) IS
    'predicted class of a classifier; the row is a JSON object; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_class(model text, features text) RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_class_text';
COMMENT ON FUNCTION @extschema@.ag_predict_class(text, text) IS
    'predicted class of a classifier; the row is a JSON object given as text; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_proba(model text, features record) RETURNS jsonb
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_proba_record';
COMMENT ON FUNCTION @extschema@.ag_predict_proba(text, record) IS
    'probability of each class, {"class": p, ...}; the row is a table''s or sub-query''s alias; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_proba(model text, features jsonb) RETURNS jsonb
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_proba_jsonb';
COMMENT ON FUNCTION @extschema@.ag_predict_proba(text, jsonb) IS
    'probability of each class, {"class": p, ...}; the row is a JSON object; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_proba(model text, features text) RETURNS jsonb
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_proba_text';
COMMENT ON FUNCTION @extschema@.ag_predict_proba(text, text) IS
    'probability of each class, {"class": p, ...}; the row is a JSON object given as text; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_proba(model text, features record, class anycompatible) RETURNS double precision
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_proba_of_record';
COMMENT ON FUNCTION @extschema@.ag_predict_proba(text, record, anycompatible) IS
    'probability of one class, 0 to 1; the row is a table''s or sub-query''s alias; NULL when an argument is NULL';

CREATE FUNCTION @extschema@.ag_predict_proba(model text, features jsonb, class anycompatible) RETURNS double precision
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_proba_of_jsonb';
COMMENT ON FUNCTION @extschema@.ag_predict_proba(text, jsonb, anycompatible) IS
    'probability of one class, 0 to 1; the row is a JSON object; NULL when an argument is NULL';

CREATE FUNCTION @extschema@.ag_predict_proba(model text, features text, class anycompatible) RETURNS double precision
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_proba_of_text';
COMMENT ON FUNCTION @extschema@.ag_predict_proba(text, text, anycompatible) IS
    'probability of one class, 0 to 1; the row is a JSON object given as text; NULL when an argument is NULL';

CREATE FUNCTION @extschema@.ag_predict_quantiles(model text, features record) RETURNS double precision[]
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_quantiles_record';
COMMENT ON FUNCTION @extschema@.ag_predict_quantiles(text, record) IS
    'predicted quantiles of a model of problem type quantile, in the order of its quantile_levels; they never cross; the row is a table''s or sub-query''s alias; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_quantiles(model text, features jsonb) RETURNS double precision[]
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_quantiles_jsonb';
COMMENT ON FUNCTION @extschema@.ag_predict_quantiles(text, jsonb) IS
    'predicted quantiles of a model of problem type quantile, in the order of its quantile_levels; they never cross; the row is a JSON object; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_quantiles(model text, features text) RETURNS double precision[]
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_quantiles_text';
COMMENT ON FUNCTION @extschema@.ag_predict_quantiles(text, text) IS
    'predicted quantiles of a model of problem type quantile, in the order of its quantile_levels; they never cross; the row is a JSON object given as text; NULL when model or row is NULL';

CREATE FUNCTION @extschema@.ag_predict_interval(model text, features record, coverage double precision DEFAULT 0.9) RETURNS double precision[]
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_interval_record';
COMMENT ON FUNCTION @extschema@.ag_predict_interval(text, record, double precision) IS
    'lower and upper bound of the true number: about the share coverage of rows like those of the fit lies between them (conformal, by the errors on rows that the models had not seen; equally wide everywhere, infinite where those are too few); the row is a table''s or sub-query''s alias; NULL when an argument is NULL';

CREATE FUNCTION @extschema@.ag_predict_interval(model text, features jsonb, coverage double precision DEFAULT 0.9) RETURNS double precision[]
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_interval_jsonb';
COMMENT ON FUNCTION @extschema@.ag_predict_interval(text, jsonb, double precision) IS
    'lower and upper bound of the true number: about the share coverage of rows like those of the fit lies between them (conformal, by the errors on rows that the models had not seen; equally wide everywhere, infinite where those are too few); the row is a JSON object; NULL when an argument is NULL';

CREATE FUNCTION @extschema@.ag_predict_interval(model text, features text, coverage double precision DEFAULT 0.9) RETURNS double precision[]
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SUPPORT @extschema@.ag_predict_support
    AS 'MODULE_PATHNAME', 'ag_sql_predict_interval_text';
COMMENT ON FUNCTION @extschema@.ag_predict_interval(text, text, double precision) IS
    'lower and upper bound of the true number: about the share coverage of rows like those of the fit lies between them (conformal, by the errors on rows that the models had not seen; equally wide everywhere, infinite where those are too few); the row is a JSON object given as text; NULL when an argument is NULL';

CREATE FUNCTION @extschema@.ag_predict_table(model text, data text, key_column text DEFAULT NULL)
    RETURNS TABLE (key text, prediction text, value double precision, proba jsonb, quantiles double precision[])
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 SUPPORT @extschema@.ag_predict_support AS 'MODULE_PATHNAME', 'ag_sql_predict_table';
COMMENT ON FUNCTION @extschema@.ag_predict_table(text, text, text) IS
    'predicts every row of a table or query, in the order in which it gives them, a large table by several processes: prediction as text, its number (NULL for a class that is a text), the classes'' probabilities (NULL for numbers), quantiles (NULL but for quantile regression); key: the value of key_column; work_mem holds the result, what is more goes into a temporary file';

CREATE FUNCTION @extschema@.ag_model_handler() RETURNS language_handler
    LANGUAGE c AS 'MODULE_PATHNAME', 'ag_sql_language_handler';
COMMENT ON FUNCTION @extschema@.ag_model_handler() IS 'runs functions in language ag_model';

CREATE FUNCTION @extschema@.ag_model_validator(oid) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'ag_sql_language_validator';
COMMENT ON FUNCTION @extschema@.ag_model_validator(oid) IS 'checks functions in language ag_model';

CREATE TRUSTED LANGUAGE ag_model HANDLER @extschema@.ag_model_handler
    VALIDATOR @extschema@.ag_model_validator;
ALTER LANGUAGE ag_model OWNER TO @extowner@;
COMMENT ON LANGUAGE ag_model IS
    'a function whose body is a model''s name predicts with it; the right on the model is the function owner''s';

CREATE FUNCTION @extschema@.ag_create_function(model text, function_name text, relation regclass)
    RETURNS regprocedure
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_create_function';
COMMENT ON FUNCTION @extschema@.ag_create_function(text, text, regclass) IS
    'makes function_name(relation) RETURNS the label''s type: an ordinary function, dropped and granted as such; at first only its owner may execute it';

-- --- what there is, and how good it is

CREATE FUNCTION @extschema@.ag_info(model text) RETURNS jsonb
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'ag_sql_info';
COMMENT ON FUNCTION @extschema@.ag_info(text) IS
    'all that is known of a model: problem_type, classes, features, eval_metric, device, warnings, options, rows, ...; times in seconds';

CREATE FUNCTION @extschema@.ag_leaderboard(model text, data text DEFAULT NULL)
    RETURNS TABLE (model text, score_test double precision, score_val double precision, eval_metric text,
        pred_time_test double precision, pred_time_val double precision, fit_time double precision,
        pred_time_test_marginal double precision, pred_time_val_marginal double precision,
        fit_time_marginal double precision, stack_level integer, can_infer boolean, fit_order integer,
        device text, num_gpus double precision, num_cpus integer, child_oof boolean)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000 ROWS 20 AS 'MODULE_PATHNAME', 'ag_sql_leaderboard';
COMMENT ON FUNCTION @extschema@.ag_leaderboard(text, text) IS
    'one row a model of the ensemble, best first; scores by eval_metric, higher is better (errors are negative); times in seconds, those called marginal without the time of a model''s inputs; child_oof: a bag that is one model of all rows, scored on each by what it says without that row; data: a table or query with the label to fill score_test, NULL for none';

CREATE FUNCTION @extschema@.ag_evaluate(model text, data text)
    RETURNS TABLE (metric text, value double precision)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 10000 ROWS 10 AS 'MODULE_PATHNAME', 'ag_sql_evaluate';
COMMENT ON FUNCTION @extschema@.ag_evaluate(text, text) IS
    'metrics on a table or query that has the label, the model''s own eval_metric first; plain values (an error is positive); NULL where a metric is undefined on these rows';

CREATE FUNCTION @extschema@.ag_feature_importance(model text, data text, subsample_size integer DEFAULT 5000,
        num_shuffle_sets integer DEFAULT 5, features text[] DEFAULT NULL)
    RETURNS TABLE (feature text, importance double precision, stddev double precision, p_value double precision, n integer,
        p99_high double precision, p99_low double precision)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 ROWS 30 AS 'MODULE_PATHNAME', 'ag_sql_feature_importance';
COMMENT ON FUNCTION @extschema@.ag_feature_importance(text, text, integer, integer, text[]) IS
    'how much the model''s score falls when a column''s values are shuffled, one row a column the model uses, the most important first: mean of n shuffles, their standard deviation, the probability that the true importance is not above 0, and the bounds of its 99 % confidence interval (NULL with one shuffle); data: held-out rows with the label, of which at most subsample_size are used';

CREATE FUNCTION @extschema@.ag_explain(model text, features record)
    RETURNS TABLE (feature text, value text, contribution double precision)
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100000 ROWS 20
    AS 'MODULE_PATHNAME', 'ag_sql_explain_record';
COMMENT ON FUNCTION @extschema@.ag_explain(text, record) IS
    'what each column makes of the prediction (Shapley values): the base value, which is the mean over rows of the training data, where feature is NULL, then one row a column; contributions sum to the prediction; of classes the probability of the positive one (of two) or of the predicted one; the row is a table''s or sub-query''s alias';

CREATE FUNCTION @extschema@.ag_explain(model text, features jsonb)
    RETURNS TABLE (feature text, value text, contribution double precision)
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100000 ROWS 20
    AS 'MODULE_PATHNAME', 'ag_sql_explain_jsonb';
COMMENT ON FUNCTION @extschema@.ag_explain(text, jsonb) IS
    'what each column makes of the prediction (Shapley values): the base value, which is the mean over rows of the training data, where feature is NULL, then one row a column; contributions sum to the prediction; of classes the probability of the positive one (of two) or of the predicted one; the row is a JSON object';

CREATE FUNCTION @extschema@.ag_explain(model text, features text)
    RETURNS TABLE (feature text, value text, contribution double precision)
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100000 ROWS 20
    AS 'MODULE_PATHNAME', 'ag_sql_explain_text';
COMMENT ON FUNCTION @extschema@.ag_explain(text, text) IS
    'what each column makes of the prediction (Shapley values): the base value, which is the mean over rows of the training data, where feature is NULL, then one row a column; contributions sum to the prediction; of classes the probability of the positive one (of two) or of the predicted one; the row is a JSON object given as text';

CREATE FUNCTION @extschema@.ag_explain(model text, features record, class anycompatible)
    RETURNS TABLE (feature text, value text, contribution double precision)
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100000 ROWS 20
    AS 'MODULE_PATHNAME', 'ag_sql_explain_record';
COMMENT ON FUNCTION @extschema@.ag_explain(text, record, anycompatible) IS
    'what each column makes of the probability of a class (Shapley values): the base value, which is the mean over rows of the training data, where feature is NULL, then one row a column; contributions sum to the probability of a class; the row is a table''s or sub-query''s alias';

CREATE FUNCTION @extschema@.ag_explain(model text, features jsonb, class anycompatible)
    RETURNS TABLE (feature text, value text, contribution double precision)
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100000 ROWS 20
    AS 'MODULE_PATHNAME', 'ag_sql_explain_jsonb';
COMMENT ON FUNCTION @extschema@.ag_explain(text, jsonb, anycompatible) IS
    'what each column makes of the probability of a class (Shapley values): the base value, which is the mean over rows of the training data, where feature is NULL, then one row a column; contributions sum to the probability of a class; the row is a JSON object';

CREATE FUNCTION @extschema@.ag_explain(model text, features text, class anycompatible)
    RETURNS TABLE (feature text, value text, contribution double precision)
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100000 ROWS 20
    AS 'MODULE_PATHNAME', 'ag_sql_explain_text';
COMMENT ON FUNCTION @extschema@.ag_explain(text, text, anycompatible) IS
    'what each column makes of the probability of a class (Shapley values): the base value, which is the mean over rows of the training data, where feature is NULL, then one row a column; contributions sum to the probability of a class; the row is a JSON object given as text';

CREATE FUNCTION @extschema@.ag_confusion_matrix(model text, data text)
    RETURNS TABLE (actual text, predicted text, n bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 10000 ROWS 10 AS 'MODULE_PATHNAME', 'ag_sql_confusion_matrix';
COMMENT ON FUNCTION @extschema@.ag_confusion_matrix(text, text) IS
    'how many rows of each actual class were predicted as which, every pair of classes (only those that occur, when there are over 100 classes); actual is NULL for labels that training never saw; data: a table or query with the label';

CREATE FUNCTION @extschema@.ag_roc_curve(model text, data text, class text DEFAULT NULL)
    RETURNS TABLE (threshold double precision, fpr double precision, tpr double precision)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME', 'ag_sql_roc_curve';
COMMENT ON FUNCTION @extschema@.ag_roc_curve(text, text, text) IS
    'false and true positive rate when rows with a probability of at least threshold are called positive, for each probability that occurs, from Infinity down; class: of more than two, the one to tell from the rest; data: a table or query with the label';

CREATE FUNCTION @extschema@.ag_pr_curve(model text, data text, class text DEFAULT NULL)
    RETURNS TABLE (threshold double precision, "precision" double precision, recall double precision)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME', 'ag_sql_pr_curve';
COMMENT ON FUNCTION @extschema@.ag_pr_curve(text, text, text) IS
    'precision and recall when rows with a probability of at least threshold are called positive, for each probability that occurs, from Infinity down; class: of more than two, the one to tell from the rest; data: a table or query with the label';

CREATE FUNCTION @extschema@.ag_calibration(model text, data text, bins integer DEFAULT 10, class text DEFAULT NULL)
    RETURNS TABLE (bin integer, low double precision, high double precision, n bigint, mean_predicted double precision,
        fraction_positive double precision)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 ROWS 10 AS 'MODULE_PATHNAME', 'ag_sql_calibration';
COMMENT ON FUNCTION @extschema@.ag_calibration(text, text, integer, text) IS
    'how often the class came true where its probability was from low (included) to high: a calibrated model has fraction_positive near mean_predicted in every bin; class: of more than two, the one to tell from the rest; data: a table or query with the label';

CREATE FUNCTION @extschema@.ag_lift(model text, data text, bins integer DEFAULT 10, class text DEFAULT NULL)
    RETURNS TABLE (bin integer, n bigint, positives double precision, rate double precision, lift double precision,
        cumulative_lift double precision, cumulative_gain double precision)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 ROWS 10 AS 'MODULE_PATHNAME', 'ag_sql_lift';
COMMENT ON FUNCTION @extschema@.ag_lift(text, text, integer, text) IS
    'rows in bins of equal size, the highest probabilities first: how many are positive, how much more often than in all rows (in the bin, and in all bins so far), and which share of all positives the bins so far hold; rows of equal probability count as evenly mixed; class: of more than two, the one to tell from the rest; data: a table or query with the label';

CREATE FUNCTION @extschema@.ag_threshold_metrics(model text, data text, class text DEFAULT NULL)
    RETURNS TABLE (threshold double precision, tp bigint, fp bigint, fn bigint, tn bigint, "precision" double precision,
        recall double precision, specificity double precision, f1 double precision, accuracy double precision,
        balanced_accuracy double precision, mcc double precision)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 ROWS 101 AS 'MODULE_PATHNAME', 'ag_sql_threshold_metrics';
COMMENT ON FUNCTION @extschema@.ag_threshold_metrics(text, text, text) IS
    'what comes of calling a row positive when its probability is above the threshold, for thresholds 0, 0.01, ... 1; NULL where a metric is undefined; class: of more than two, the one to tell from the rest; data: a table or query with the label';

CREATE FUNCTION @extschema@.ag_partial_dependence(model text, data text, feature text, points integer DEFAULT 20,
        class text DEFAULT NULL)
    RETURNS TABLE (value text, mean double precision, share double precision)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 ROWS 20 AS 'MODULE_PATHNAME', 'ag_sql_partial_dependence';
COMMENT ON FUNCTION @extschema@.ag_partial_dependence(text, text, text, integer, text) IS
    'the mean prediction (of classes: the probability of the positive one, or of class) if every row had that value of the column feature, for at most so many of the values that the data has, and the share of rows that have it: numbers and dates ascending at even distances among the rows, texts the commonest first; data: a table or query, of which at most 1000 rows are used';

CREATE FUNCTION @extschema@.ag_drift(model text, data text)
    RETURNS TABLE (feature text, psi double precision, missing_before double precision, missing_now double precision,
        unseen double precision)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 10000 ROWS 20 AS 'MODULE_PATHNAME', 'ag_sql_drift';
COMMENT ON FUNCTION @extschema@.ag_drift(text, text) IS
    'how far data is from what the model was trained on, a row for each column that it uses, the farthest first: population stability index (below 0.1 as before, above 0.25 another distribution), shares of NULLs then and now, share of values that training never saw (categories that are new, numbers beyond the range)';

CREATE FUNCTION @extschema@.ag_model_failures(model text)
    RETURNS TABLE (model text, family text, reason text, message text, seconds double precision)
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
    SELECT f ->> 'model', f ->> 'family', f ->> 'reason', f ->> 'message', (f ->> 'seconds')::double precision
    FROM jsonb_array_elements(@extschema@.ag_info($1) -> 'plan' -> 'failures') WITH ORDINALITY AS e (f, o) ORDER BY o
$$;
COMMENT ON FUNCTION @extschema@.ag_model_failures(text) IS
    'the models that a fit was asked for and went without, in the order in which they failed: reason is time, memory, data, option or error; seconds that it took to find out; no row for who may only predict';

CREATE FUNCTION @extschema@.ag_predict_oof(model text)
    RETURNS TABLE ("row" bigint, label text, prediction text, proba jsonb, quantiles double precision[])
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 10000 ROWS 1000 AS 'MODULE_PATHNAME', 'ag_sql_predict_oof';
COMMENT ON FUNCTION @extschema@.ag_predict_oof(text) IS
    'what the best model predicted for the rows that it was scored on, by models trained without them (bags: out of fold; else: held out), beside the true label; kept in single precision and in an order of the fit''s own; takes the right to inspect; proba is NULL for numbers, quantiles for all but quantiles';

CREATE FUNCTION @extschema@.ag_learning_curves(model text)
    RETURNS TABLE (model text, fold integer, metric text, iteration integer, val double precision)
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000 ROWS 500 AS 'MODULE_PATHNAME', 'ag_sql_learning_curves';
COMMENT ON FUNCTION @extschema@.ag_learning_curves(text) IS
    'how the models that grow in rounds (boosters by trees, nets by epochs) did on their validation rows, a row for each model, fold and iteration (at most 128 at even distances): the metric that early stopping watches, as a plain value; fold: of a bag, NULL for one model; only of models whose parts are stored';

CREATE FUNCTION @extschema@.ag_fit_summary(model text) RETURNS TABLE (item text, value text)
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED ROWS 20 SET search_path = pg_catalog, pg_temp AS $$
    WITH m AS (SELECT @extschema@.ag_info(model) AS i)
    SELECT item, value FROM m, LATERAL (VALUES
        (1, 'model', format('%s, version %s', i ->> 'name', i ->> 'version')),
        (2, 'problem type', i ->> 'problem_type'),
        (3, 'label', i ->> 'label'),
        (4, 'classes', (SELECT string_agg(c, ', ' ORDER BY o) FROM jsonb_array_elements_text(i -> 'classes') WITH ORDINALITY AS e (c, o))),
        (5, 'rows', i ->> 'rows'),
        (6, 'rows left out', NULLIF(i ->> 'rows_left_out', '0')),
        (7, 'columns', (SELECT string_agg(c, ', ' ORDER BY o) FROM jsonb_array_elements_text(i -> 'features') WITH ORDINALITY AS e (c, o))),
        (8, 'columns left out', (SELECT string_agg(format('%s (%s)', key, e.value), ', ' ORDER BY key) FROM jsonb_each_text(i -> 'left_out') AS e)),
        (9, 'metric', i ->> 'eval_metric'),
        (10, 'best model', i ->> 'best_model'),
        (11, 'validation score', i ->> 'score_val'),
        (12, 'models', (SELECT string_agg(concat_ws(' ', l.model, round(l.score_val::numeric, 4)), ', ' ORDER BY o)
            FROM @extschema@.ag_leaderboard(model, NULL::text) WITH ORDINALITY AS l (model, score_test, score_val, a, b, c, d, e, f, g, h, j, k, n, p, q, r, o))),
        (13, 'models left out', (SELECT string_agg(format('%s (%s)', f.model, f.reason), ', ') FROM @extschema@.ag_model_failures(model) AS f)),
        (14, 'seconds', i ->> 'fit_time'),
        (15, 'device', i ->> 'device'),
        (16, 'warnings', (SELECT string_agg(w, '; ' ORDER BY o) FROM jsonb_array_elements_text(i -> 'warnings') WITH ORDINALITY AS e (w, o)))
    ) AS s (n, item, value) WHERE value IS NOT NULL ORDER BY n
$$;
COMMENT ON FUNCTION @extschema@.ag_fit_summary(text) IS
    'what a fit came to, in words: one line a row; ag_info and ag_leaderboard have all of it as values';

CREATE FUNCTION @extschema@.ag_report(model text, data text DEFAULT NULL) RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 AS 'MODULE_PATHNAME', 'ag_sql_report';
COMMENT ON FUNCTION @extschema@.ag_report(text, text) IS
    'a model as one HTML page that needs nothing else: what was fitted, its models, their devices and times, and where data (a table or query with the label) is given how it does there, with plots; NULL when model is NULL';

CREATE FUNCTION @extschema@.ag_export(model text, format text) RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 10000 AS 'MODULE_PATHNAME', 'ag_sql_export';
COMMENT ON FUNCTION @extschema@.ag_export(text, text) IS
    'a model of trees (a member of an ensemble, as in ''m/GBM'') in another program''s format: json, sql (an expression), xgboost_json or lightgbm_text; an error where the format can''t hold it; takes the right to inspect the model';

CREATE FUNCTION @extschema@.ag_export_bytea(model text, format text) RETURNS bytea
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 10000 AS 'MODULE_PATHNAME', 'ag_sql_export_bytea';
COMMENT ON FUNCTION @extschema@.ag_export_bytea(text, text) IS
    'the same as bytes, texts in UTF-8; also onnx';

CREATE FUNCTION @extschema@.ag_import(name text, model text, format text, label text DEFAULT 'label', classes text[] DEFAULT NULL)
    RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 AS 'MODULE_PATHNAME', 'ag_sql_import_text';
CREATE FUNCTION @extschema@.ag_import(name text, model bytea, format text, label text DEFAULT 'label', classes text[] DEFAULT NULL)
    RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 AS 'MODULE_PATHNAME', 'ag_sql_import_bytea';
COMMENT ON FUNCTION @extschema@.ag_import(text, text, text, text, text[]) IS
    'stores a model of trees that another program made, and gives the predictor''s name: format is xgboost_json or lightgbm_text; its features are columns by name; label: what the column it predicts is called; classes: names of its classes in their order, NULL for the numbers 0, 1, ...';
COMMENT ON FUNCTION @extschema@.ag_import(text, bytea, text, text, text[]) IS
    'stores a model of trees that another program made, and gives the predictor''s name: format is xgboost_json or lightgbm_text; its features are columns by name; label: what the column it predicts is called; classes: names of its classes in their order, NULL for the numbers 0, 1, ...';

CREATE FUNCTION @extschema@.ag_prewarm(model text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_prewarm';
COMMENT ON FUNCTION @extschema@.ag_prewarm(text) IS
    'reads a model into this session''s cache, so that its first prediction does not wait for it';

CREATE FUNCTION @extschema@.ag_in_test(key text, fraction double precision) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ag_sql_in_test_text';
CREATE FUNCTION @extschema@.ag_in_test(key bigint, fraction double precision) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ag_sql_in_test_bigint';
CREATE FUNCTION @extschema@.ag_in_test(key uuid, fraction double precision) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ag_sql_in_test_uuid';
COMMENT ON FUNCTION @extschema@.ag_in_test(text, double precision) IS
    'whether the row of that key belongs to the test rows: about that fraction of all keys, always the same ones; a larger fraction keeps those of a smaller';
COMMENT ON FUNCTION @extschema@.ag_in_test(bigint, double precision) IS
    'whether the row of that key belongs to the test rows: about that fraction of all keys, always the same ones; a larger fraction keeps those of a smaller';
COMMENT ON FUNCTION @extschema@.ag_in_test(uuid, double precision) IS
    'whether the row of that key belongs to the test rows: about that fraction of all keys, always the same ones; a larger fraction keeps those of a smaller';

CREATE FUNCTION @extschema@.ag_options()
    RETURNS TABLE (name text, type text, range text, "default" text, supported boolean, help text)
    LANGUAGE c STABLE PARALLEL SAFE ROWS 50 AS 'MODULE_PATHNAME', 'ag_sql_options';
COMMENT ON FUNCTION @extschema@.ag_options() IS
    'every option of ag_fit; default is JSON; those not supported are refused by this version';

CREATE FUNCTION @extschema@.ag_families()
    RETURNS TABLE (family text, parameter text, aliases text, type text, range text, "default" text,
        gpu boolean, help text, left_out_of text, search_space text)
    LANGUAGE c STABLE PARALLEL SAFE ROWS 50 AS 'MODULE_PATHNAME', 'ag_sql_families';
COMMENT ON FUNCTION @extschema@.ag_families() IS
    'the model families of the option hyperparameters and what each can be told; gpu: whether the family trains on a GPU; left_out_of: what the family is not fitted for, and why; search_space: what hyperparameter_tune_kwargs tries where no space is given';

-- --- the machine. Both start a program and wait for it, and tell more to members of pg_monitor.

CREATE FUNCTION @extschema@.ag_gpus()
    RETURNS TABLE (index integer, uuid text, name text, compute_capability text, memory_total bigint, memory_free bigint,
        driver text, runtime text, usable boolean, reason text, pids integer[])
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 4 AS 'MODULE_PATHNAME', 'ag_sql_gpus';
COMMENT ON FUNCTION @extschema@.ag_gpus() IS
    'one row a GPU: index as CUDA counts (NULL: CUDA doesn''t show it), memory in bytes, version of the driver and of CUDA in ag_pg''s module; usable: a kernel ran on it, else reason says why not; pids: processes that use it, shown to members of pg_monitor';

CREATE FUNCTION @extschema@.ag_doctor()
    RETURNS TABLE ("check" text, status text, found text, cure text)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 AS 'MODULE_PATHNAME', 'ag_sql_doctor';
COMMENT ON FUNCTION @extschema@.ag_doctor() IS
    'one row a check of the installation, the settings and the GPUs, the root cause of trouble first; status: fail, warn or ok; cure: what to do; paths are shown to members of pg_monitor';

-- --- changing it

CREATE FUNCTION @extschema@.ag_drop(model text) RETURNS integer
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_drop';
COMMENT ON FUNCTION @extschema@.ag_drop(text) IS
    'drops all versions of a model, or with ''name@3'' that one; gives how many versions went';

CREATE FUNCTION @extschema@.ag_set_decision_threshold(model text, threshold double precision) RETURNS double precision
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_set_decision_threshold';
COMMENT ON FUNCTION @extschema@.ag_set_decision_threshold(text, double precision) IS
    'from now on rows are positive above that probability, 0 to 1 (NULL: a half), of a binary model''s current version or the one named; gives the threshold that there was; ag_threshold_metrics shows what comes of each; takes ownership';

CREATE FUNCTION @extschema@.ag_activate(name text, version integer) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_activate';
COMMENT ON FUNCTION @extschema@.ag_activate(text, integer) IS
    'makes a version the current one, and keeps it so when newer ones are fitted; version NULL: the newest again';

CREATE FUNCTION @extschema@.ag_refresh(model text, activate text DEFAULT 'if_better', options jsonb DEFAULT '{}') RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 AS 'MODULE_PATHNAME', 'ag_sql_refresh';
COMMENT ON FUNCTION @extschema@.ag_refresh(text, text, jsonb) IS
    'fits a model again as it was fitted, on its data as they are now, with options put over the old ones; gives the new version as name@3; activate: if_better (it becomes current only when its validation score is better than the current version''s), always, or never; the stored query runs with your rights, so for the role that owns the model alone, where the extension''s owner has its rights';

CREATE FUNCTION @extschema@.ag_refit_full(model text, options jsonb DEFAULT '{}') RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 AS 'MODULE_PATHNAME', 'ag_sql_refit_full';
COMMENT ON FUNCTION @extschema@.ag_refit_full(text, jsonb) IS
    'trains what a model predicts with (or of ''name/MEMBER'' that member) once more, on all rows of its data as they are now: one model instead of each bag, with the parameters, rounds, weights, temperature, threshold and quantile shifts that its fit found, as X_FULL, and without validation; gives the new version as name@3, which becomes the current one; options: verbosity, memory_limit, num_cpus, num_gpus; the stored query runs with your rights, so for the role that owns the model alone, where the extension''s owner has its rights';

CREATE FUNCTION @extschema@.ag_delete_members(model text, models_to_keep text[] DEFAULT NULL, models_to_delete text[] DEFAULT NULL,
        dry_run boolean DEFAULT false)
    RETURNS TABLE (member text, bytes bigint)
    LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 ROWS 10 AS 'MODULE_PATHNAME', 'ag_sql_delete_members';
COMMENT ON FUNCTION @extschema@.ag_delete_members(text, text[], text[], boolean) IS
    'deletes members of a version: all but those to keep (''best'': what it predicts with) and what they combine, or those to delete with the folds of bags among them; gives what went, and its bytes; dry_run: what would go';

CREATE FUNCTION @extschema@.ag_rename(model text, new_name text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_rename';
COMMENT ON FUNCTION @extschema@.ag_rename(text, text) IS
    'gives a model, all its versions, another name; functions made by ag_create_function keep the old one in their bodies';

-- --- who may

CREATE FUNCTION @extschema@.ag_grant(model text, role text, "right" text DEFAULT 'predict') RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_grant';
COMMENT ON FUNCTION @extschema@.ag_grant(text, text, text) IS
    'lets a role (''public'': every role) predict with a model, or with right ''inspect'' also see its data''s text, options, features and categories; no right on the training table is needed';

CREATE FUNCTION @extschema@.ag_revoke(model text, role text, "right" text DEFAULT 'predict') RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_revoke';
COMMENT ON FUNCTION @extschema@.ag_revoke(text, text, text) IS
    'takes a right back that ag_grant gave; ''predict'' takes ''inspect'' along';

CREATE FUNCTION @extschema@.ag_reassign(old_role text, new_role text) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'ag_sql_reassign';
COMMENT ON FUNCTION @extschema@.ag_reassign(text, text) IS
    'gives all models of one role to another and how many versions that were; superusers can name an old role that is no more, whose granted rights then go along';

-- Which rows of the catalogue a role sees. The views carry the predicate themselves, as barriers, so that nobody needs a right
-- on the tables.
CREATE FUNCTION @extschema@.ag_model_right(model text, owner text) RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ag_sql_model_right';
COMMENT ON FUNCTION @extschema@.ag_model_right(text, text) IS
    'what the current role may do with a model of that name and owner: ''owner'', ''inspect'', ''predict'', or NULL for nothing';

CREATE VIEW @extschema@.ag_models WITH (security_barrier) AS
    SELECT p.name, p.version, p.problem_type, p.label, p.eval_metric, p.score_val, p.best_model, p.rows,
        p.rows_left_out, p.fit_time, p.created_at, p.owner,
        CASE WHEN @extschema@.ag_model_right(p.name, p.owner) <> 'predict' THEN p.data END AS data, p.pinned,
        (SELECT pg_catalog.count(*) FROM @extschema@.ag_predictor v WHERE v.name = p.name) AS versions,
        pg_catalog.format('%s(%L, %s)', CASE WHEN p.problem_type IN ('binary', 'multiclass') THEN 'ag_predict_class'
                WHEN p.problem_type = 'quantile' THEN 'ag_predict_quantiles' ELSE 'ag_predict' END, p.name,
            CASE WHEN p.label = 't' OR EXISTS (SELECT FROM @extschema@.ag_predictor_feature f WHERE f.predictor = p.id AND f.name = 't')
                THEN 'row_of_t' ELSE 't' END) AS predict_with,
        @extschema@.ag_model_right(p.name, p.owner) AS my_right
    FROM @extschema@.ag_predictor p
    WHERE @extschema@.ag_model_right(p.name, p.owner) IS NOT NULL
        AND NOT EXISTS (SELECT FROM @extschema@.ag_predictor o WHERE o.name = p.name
            AND (o.pinned, o.version) > (p.pinned, p.version));
COMMENT ON VIEW @extschema@.ag_models IS 'the models that you may use, each by its current version';
COMMENT ON COLUMN @extschema@.ag_models.score_val IS 'validation score by eval_metric, higher is better; NULL: none';
COMMENT ON COLUMN @extschema@.ag_models.fit_time IS 'seconds';
COMMENT ON COLUMN @extschema@.ag_models.pinned IS 'made current by ag_activate';
COMMENT ON COLUMN @extschema@.ag_models.versions IS 'how many versions there are (name@1, name@2, ...)';
COMMENT ON COLUMN @extschema@.ag_models.predict_with IS 'the call to paste; t (row_of_t, where a column is called t) is the alias of a table or sub-query';
COMMENT ON COLUMN @extschema@.ag_models.data IS 'what it was fitted on, as given to ag_fit; NULL: you may only predict';
COMMENT ON COLUMN @extschema@.ag_models.my_right IS 'predict, inspect (see its data''s text, options and features too), or owner (all)';
COMMENT ON COLUMN @extschema@.ag_models.name IS 'of the model, for ag_predict and its kin';
COMMENT ON COLUMN @extschema@.ag_models.version IS 'the current one';
COMMENT ON COLUMN @extschema@.ag_models.problem_type IS 'binary, multiclass, regression or quantile';
COMMENT ON COLUMN @extschema@.ag_models.label IS 'column that it predicts';
COMMENT ON COLUMN @extschema@.ag_models.eval_metric IS 'metric that its scores are by';
COMMENT ON COLUMN @extschema@.ag_models.best_model IS 'the member that predicts; ag_leaderboard has them all';
COMMENT ON COLUMN @extschema@.ag_models.rows IS 'rows trained on and validated on';
COMMENT ON COLUMN @extschema@.ag_models.rows_left_out IS 'rows whose label was NULL';
COMMENT ON COLUMN @extschema@.ag_models.created_at IS 'when it was stored';
COMMENT ON COLUMN @extschema@.ag_models.owner IS 'role that may do everything with it';
ALTER VIEW @extschema@.ag_models OWNER TO @extowner@;
REVOKE ALL ON @extschema@.ag_models FROM PUBLIC;
GRANT SELECT ON @extschema@.ag_models TO PUBLIC;

CREATE VIEW @extschema@.ag_features WITH (security_barrier) AS
    SELECT p.name AS model, p.version, f.ordinal, f.name AS feature, f.type, f.kind, f.used, f.became, f.dropped_why,
        f.missing, f.distinct_values, f.min, f.max, f.mean, f.categories
    FROM @extschema@.ag_predictor p JOIN @extschema@.ag_predictor_feature f ON f.predictor = p.id
    WHERE @extschema@.ag_model_right(p.name, p.owner) IN ('inspect', 'owner');
COMMENT ON VIEW @extschema@.ag_features IS
    'the columns that your models, and those you may inspect, were fitted on; every version has its own rows';
COMMENT ON COLUMN @extschema@.ag_features.missing IS 'training rows in which it was NULL';
COMMENT ON COLUMN @extschema@.ag_features.distinct_values IS 'NULL: not counted';
COMMENT ON COLUMN @extschema@.ag_features.categories IS 'the first 100 of its categories, the commonest first; NULL: it has none';
COMMENT ON COLUMN @extschema@.ag_features.dropped_why IS 'why no model uses it; NULL where used';
COMMENT ON COLUMN @extschema@.ag_features.model IS 'name of the model';
COMMENT ON COLUMN @extschema@.ag_features.version IS 'of the model';
COMMENT ON COLUMN @extschema@.ag_features.ordinal IS 'place among the columns, from 1 on';
COMMENT ON COLUMN @extschema@.ag_features.feature IS 'name of the column';
COMMENT ON COLUMN @extschema@.ag_features.type IS 'SQL type of the column';
COMMENT ON COLUMN @extschema@.ag_features.kind IS 'what the column was taken for: number, category, text, ...';
COMMENT ON COLUMN @extschema@.ag_features.used IS 'whether the models see anything of it';
COMMENT ON COLUMN @extschema@.ag_features.became IS 'what they see of it; NULL: nothing';
COMMENT ON COLUMN @extschema@.ag_features.min IS 'smallest number; NULL: it has none';
COMMENT ON COLUMN @extschema@.ag_features.max IS 'largest number; NULL: it has none';
COMMENT ON COLUMN @extschema@.ag_features.mean IS 'mean of its numbers; NULL: it has none';
ALTER VIEW @extschema@.ag_features OWNER TO @extowner@;
REVOKE ALL ON @extschema@.ag_features FROM PUBLIC;
GRANT SELECT ON @extschema@.ag_features TO PUBLIC;
