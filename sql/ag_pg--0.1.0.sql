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
    inputs jsonb,
    PRIMARY KEY (predictor, ordinal)
);

-- member 0 is the pipeline (columns, encoders, classes); the others are ag_member.ordinal.
CREATE TABLE @extschema@.ag_member_part (
    predictor uuid NOT NULL REFERENCES @extschema@.ag_predictor ON DELETE CASCADE,
    member integer NOT NULL CHECK (member >= 0),
    part integer NOT NULL CHECK (part >= 0),
    data bytea NOT NULL,
    checksum bigint NOT NULL,
    PRIMARY KEY (predictor, member, part)
);
ALTER TABLE @extschema@.ag_member_part ALTER COLUMN data SET STORAGE EXTERNAL;

-- The tables belong to whoever owns the extension (a database owner can then dump and restore them) and are granted
-- to nobody; their rows are the user's data, so pg_dump takes them along.
ALTER TABLE @extschema@.ag_predictor OWNER TO @extowner@;
ALTER TABLE @extschema@.ag_predictor_feature OWNER TO @extowner@;
ALTER TABLE @extschema@.ag_member OWNER TO @extowner@;
ALTER TABLE @extschema@.ag_member_part OWNER TO @extowner@;

REVOKE ALL ON @extschema@.ag_predictor, @extschema@.ag_predictor_feature, @extschema@.ag_member,
    @extschema@.ag_member_part FROM PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_predictor', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_predictor_feature', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_member', '');
SELECT pg_catalog.pg_extension_config_dump('@extschema@.ag_member_part', '');

COMMENT ON TABLE @extschema@.ag_predictor IS
    'one fitted version of a predictor a row; read it through ag_models, ag_info and ag_leaderboard';
COMMENT ON COLUMN @extschema@.ag_predictor.pinned IS 'made the current version by ag_activate; the highest version is current when none is pinned';
COMMENT ON COLUMN @extschema@.ag_predictor.owner IS 'name of the role that may use, refit and drop it';
COMMENT ON COLUMN @extschema@.ag_predictor.rows IS 'rows trained on and validated on';
COMMENT ON COLUMN @extschema@.ag_predictor.rows_left_out IS 'rows whose label was NULL';
COMMENT ON COLUMN @extschema@.ag_predictor.classes IS 'names of the classes in their order; NULL for regression';
COMMENT ON COLUMN @extschema@.ag_predictor.time_limit IS 'seconds that were allowed; NULL: no limit';
COMMENT ON COLUMN @extschema@.ag_predictor.fit_time IS 'seconds that the whole call took';
COMMENT ON COLUMN @extschema@.ag_predictor.score_val IS 'validation score of best_model by eval_metric; higher is better';
COMMENT ON TABLE @extschema@.ag_predictor_feature IS 'one column that a predictor was trained on a row';
COMMENT ON TABLE @extschema@.ag_member IS 'one model of a predictor''s ensemble a row';
COMMENT ON COLUMN @extschema@.ag_member.fit_time IS 'seconds of its own, without those of its inputs';
COMMENT ON COLUMN @extschema@.ag_member.predict_time IS 'seconds of its own to predict the validation rows';
COMMENT ON COLUMN @extschema@.ag_member.inputs IS 'the models it combines and their weights; NULL for a model that reads the columns';
COMMENT ON TABLE @extschema@.ag_member_part IS 'the bytes of a member, in parts of 8 MB; member 0 is the pipeline';

CREATE FUNCTION @extschema@.ag_version() RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ag_sql_version';
COMMENT ON FUNCTION @extschema@.ag_version() IS
    'version of the loaded library (the SQL objects'' version is in pg_extension)';
