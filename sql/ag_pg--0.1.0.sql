-- ag_pg 0.1.0: complain if the script is sourced in psql rather than by CREATE EXTENSION
\echo Use "CREATE EXTENSION ag_pg" to load this file. \quit

-- The catalogue: plain tables, dumped with the database, granted to nobody. See src/pg/catalog.h.
CREATE TABLE @extschema@.ag_predictor (
    id uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
    name text NOT NULL,
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
